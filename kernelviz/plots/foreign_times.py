"""Times that another tool measured: a line by size if a size varies, else a bar for each case."""

import math
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Figure, Result, Run, units
from kernelviz.metrics.foreign_times import names, of_case
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.sweep import line_sizes, swept_axis, varying_axes
from kernelviz.plots.frame import Draft, Props, log_axis, nothing, scatter_type, shorten, size_ticks
from kernelviz.plots.variant_styles import Style, series, styles_of
from kernelviz.text import format_size, format_sizes

HEIGHT = 380
_ROW_PX, _FRAME_PX = 24, 90
_MARKERS_TO = 0.04
"""The width of the column of markers beside bars, as a fraction of the plot width."""
MOST_BARS = 60
"""The chart shows at most this many cases; the table has all of them."""
_LEAST_SPREAD = 50.0
"""Times that differ by more than this are drawn on a logarithmic scale."""


def other_times_by_size(run: Run, name: str | None = None) -> go.Figure:
    """One of the times (None: the first) of every case of a run that another tool measured."""
    chosen = name or next(iter(names(run)), None)
    timed = [(r, of_case(r)[chosen]) for r in run.results if chosen is not None and chosen in of_case(r)]
    if chosen is None or not timed:
        return nothing("No case of this run has this time. Choose another time, or see the table.", height=HEIGHT)
    scale, unit = units.time_unit(max(f.estimate for _, f in timed))
    problems = [r.problem for r, _ in timed]
    axis = swept_axis(problems) if varying_axes(problems) else None
    if axis is None:
        return _bars(run, timed, scale, unit, chosen)
    draft = Draft(HEIGHT, x_title=escape(axis), y_title=escape(f"{chosen}, {unit}"))
    lines = grouped(timed, key=lambda case: (case[0].variant, line_sizes(case[0].problem, problems, axis)))
    styles = styles_of(run.plan.op, (r.variant for r, _ in timed), run.plan.variants)
    one_variant = len({variant for variant, _ in lines}) == 1
    draft.traces = [
        _line(axis, other_sizes, line, scale, series(number) if one_variant else styles[variant])
        for number, ((variant, other_sizes), line) in enumerate(lines.items())
    ]
    ticks, labels = size_ticks([p.sizes[axis] for p in problems])
    draft.x_axis |= {"type": "log", "tickvals": ticks, "ticktext": labels, "showgrid": False}
    times = [f.estimate / scale for _, f in timed]
    draft.y_axis |= log_axis(min(times) / 1.5, max(times) * 1.5)
    draft.layout["showlegend"] = True
    return draft.figure()


def _line(
    axis: str,
    other_sizes: tuple[tuple[str, int], ...],
    line: Sequence[tuple[Result, Figure]],
    scale: float,
    style: Style,
) -> Props:
    ordered = sorted(line, key=lambda one: one[0].problem.sizes[axis])
    return {
        "type": scatter_type(len(ordered)),
        "x": [r.problem.sizes[axis] for r, _ in ordered],
        "y": [f.estimate / scale for _, f in ordered],
        "name": escape(
            ", ".join(filter(None, (ordered[0][0].variant, *(f"{a} = {format_size(size)}" for a, size in other_sizes))))
        ),
        "mode": "lines+markers",
        "line": {"color": style.colour, "width": 2},
        "marker": {"color": style.colour, "size": 8, "symbol": style.marker},
        "hovertext": [_hover(r, f) for r, f in ordered],
        "hoverinfo": "text",
    }


def _bars(run: Run, timed: Sequence[tuple[Result, Figure]], scale: float, unit: str, name: str) -> go.Figure:
    visible = timed[:MOST_BARS]
    remark = f", the first {MOST_BARS} of {len(timed)} cases" if len(timed) > MOST_BARS else ""
    draft = Draft(_FRAME_PX + _ROW_PX * len(visible), x_title=escape(f"{name}, {unit}{remark}"))
    times = [f.estimate / scale for _, f in visible]
    styles = styles_of(run.plan.op, (r.variant for r, _ in visible), run.plan.variants)
    bars = {
        "type": "bar",
        "orientation": "h",
        "x": times,
        "y": list(range(len(visible))),
        "marker": {"color": [styles[r.variant].colour for r, _ in visible]},
        "text": [units.seconds(f.estimate) for _, f in visible],
        "textposition": "outside",
        "cliponaxis": False,
        "hovertext": [_hover(r, f) for r, f in visible],
        "hoverinfo": "text",
    }
    looks = [styles[r.variant] for r, _ in visible]
    markers = {
        "type": "scatter",
        "x": [0] * len(visible),
        "y": list(range(len(visible))),
        "xaxis": "x2",
        "mode": "markers",
        "marker": {"color": [s.colour for s in looks], "symbol": [s.marker for s in looks], "size": 9},
        "hoverinfo": "skip",
    }
    draft.traces = [bars, markers]
    draft.x_axis["domain"] = [_MARKERS_TO, 1]
    draft.layout["xaxis2"] = {
        "domain": [0, _MARKERS_TO], "range": [-1, 1], "visible": False, "fixedrange": True, "anchor": "y",
    }  # fmt: skip
    draft.y_axis |= {
        "autorange": "reversed",
        "showgrid": False,
        "tickvals": list(range(len(visible))),
        "ticktext": [escape(shorten(r.variant, 34)) for r, _ in visible],
    }
    if max(times) / min(times) > _LEAST_SPREAD:
        draft.x_axis |= _decades(times, scale) | {"title": draft.x_axis["title"] | {"text": escape(f"{name}{remark}")}}
    else:
        # Space for the label after the longest bar, also on a phone.
        draft.x_axis["range"] = [0, max(times) * 1.35]
    draft.layout["showlegend"] = False
    return draft.figure()


def _decades(values: Sequence[float], scale: float) -> Props:
    """A logarithmic axis over many decades, with a unit at each tick. Bars start below the smallest value."""
    low, high = math.floor(math.log10(min(values) * scale)) - 0.3, math.log10(max(values) * scale) + 1.2
    exponents = range(math.ceil(low), math.floor(high) + 1, math.ceil((high - low) / 6))
    return {
        "type": "log",
        "range": [low - math.log10(scale), high - math.log10(scale)],
        "tickvals": [10.0**p / scale for p in exponents],
        "ticktext": [units.seconds(10.0**p, 1) for p in exponents],
    }


def _hover(result: Result, figure: Figure) -> str:
    lines = [f"<b>{escape(shorten(result.variant, 80))}</b>", escape(format_sizes(result.problem))]
    return "<br>".join(w for w in (*lines, units.seconds(figure.estimate), escape(figure.method or "")) if w)
