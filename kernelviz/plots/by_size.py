"""Time, bandwidth, arithmetic rate or speed-up against the swept size, with the roof and the end of the cache."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain, cycle

import plotly.graph_objects as go

from kernelviz.core import Roof, Run, Stage, units
from kernelviz.metrics.figures import Headline, figure_of
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.roofline import speed_of_light
from kernelviz.metrics.rows import Row
from kernelviz.metrics.sweep import Point, cache_boundary, line_axes, swept_axis, tied_axes
from kernelviz.ops import catalogue
from kernelviz.plots.frame import (
    Draft,
    Props,
    Runs,
    companions,
    end_of_axis,
    hover,
    intervals,
    listed,
    log_axis,
    neutral_line,
    nothing,
    problems_of,
    roofs_of,
    run_suffix,
    scatter_type,
    size_ticks,
    style_in,
    table_of,
    trace_name,
)
from kernelviz.plots.line_labels import DASHES, Dashes, End, dashes_of, line_name, name_ends
from kernelviz.plots.quantities import BANDWIDTH, RATE, SPEED_UP, TIME, Quantity, brief_hover, interval_of
from kernelviz.plots.variant_styles import BAD, NEUTRAL, Style
from kernelviz.text import format_roof_name, format_sizes, format_variant
from kernelviz.text.caches import format_caches
from kernelviz.text.charts import describe_no_time

HEIGHT = 350
_AROUND_PX = 110
"""The height of title, ticks and legend together."""
MOST_HOVERED = 16
"""The hover of all variants at a size has at most this many lines."""
_LOG_FROM = 100.0
"""From this ratio of the largest to the smallest value on, a bandwidth or rate has a logarithmic axis."""


def latency_by_size(
    runs: Runs,
    *,
    roofs: Sequence[Roof] | None = None,
    axis: str | None = None,
    headline: Headline = "cold",
    beside: Sequence[str] = (),
) -> go.Figure:
    """Time by size, both logarithmic. The dashed line is the speed of light, the shortest time that the roofs allow."""
    return _by_size(runs, TIME, roofs, axis, headline, beside)


def bandwidth_by_size(
    runs: Runs,
    *,
    roofs: Sequence[Roof] | None = None,
    axis: str | None = None,
    headline: Headline = "cold",
    beside: Sequence[str] = (),
) -> go.Figure:
    """Bandwidth by size: minimal bytes divided by time. The dashed line is the bandwidth that the measured roofs allow."""
    return _by_size(runs, BANDWIDTH, roofs, axis, headline, beside)


def rate_by_size(
    runs: Runs,
    *,
    roofs: Sequence[Roof] | None = None,
    axis: str | None = None,
    headline: Headline = "cold",
    beside: Sequence[str] = (),
) -> go.Figure:
    """Arithmetic rate by size. The dashed line is the rate that the measured roofs allow."""
    return _by_size(runs, RATE, roofs, axis, headline, beside)


def speed_up_by_size(
    runs: Runs,
    *,
    roofs: Sequence[Roof] | None = None,
    axis: str | None = None,
    headline: Headline = "cold",
    beside: Sequence[str] = (),
) -> go.Figure:
    """Speed-up over the baseline by size, logarithmic. The dashed line is the speed-up that the measured roofs allow."""
    return _by_size(runs, SPEED_UP, roofs, axis, headline, beside)


_UNTRIED: tuple[Stage, ...] = ("cancelled", "unavailable")
"""Stages in which the case was not run, so it is unknown whether it would fail."""


@dataclass(frozen=True, slots=True)
class _CasePoint:
    """A point: its row, size, the other sizes that identify its line, value with interval, and hover text: all of it, and the
    line that it has in the hover of all variants."""

    row: Row
    x: int
    other_sizes: tuple[tuple[str, int], ...]
    y: float | None
    low: float | None
    high: float | None
    text: str
    brief: str


@dataclass(frozen=True, slots=True)
class _Chart:
    """The properties that all parts of one chart share."""

    runs: tuple[Run, ...]
    quantity: Quantity
    axis: str
    scale: float
    unit: str
    headline: Headline
    beside: tuple[str, ...]
    """Variants that are not drawn, but whose styles none may have."""

    one_hover: bool
    """Whether hovering shows all variants at a size. With several lines for each variant, it shows one point only."""

    @property
    def hover_info(self) -> str:
        """The hover of all variants has the size as its title."""
        return "x+text" if self.one_hover else "text"

    def hover(self, point: _CasePoint) -> str:
        return point.brief if self.one_hover else point.text

    def style(self, row: Row) -> Style:
        return style_in(self.runs, row.result.problem.op, row.result.variant, self.beside)


def _by_size(
    runs: Runs,
    quantity: Quantity,
    roofs: Sequence[Roof] | None,
    axis: str | None,
    headline: Headline,
    beside: Sequence[str],
) -> go.Figure:
    run_list = listed(runs)
    chosen = axis or swept_axis(problems_of(run_list))
    if chosen is None:
        return nothing(quantity.empty, height=HEIGHT)
    points_of_runs = [_points(run, quantity, roofs, chosen, headline) for run in run_list]
    all_points = list(chain.from_iterable(points_of_runs))
    if headline == "warm" and all(d.y is None and d.row.failure is None for d in all_points):
        return nothing(str(describe_no_time(run_list, headline)), height=HEIGHT)
    largest = max((d.y for d in all_points if d.y is not None), default=0.0)
    scale, unit = next((p for p in quantity.prefixes if largest >= p[0]), quantity.prefixes[-1])
    one_hover = (
        not any(d.other_sizes for d in all_points)
        and sum(len({d.row.result.variant for d in points}) for points in points_of_runs) <= MOST_HOVERED
    )
    chart = _Chart(run_list, quantity, chosen, scale, unit, headline, tuple(beside), one_hover)
    draft = Draft(HEIGHT, x_title=_axis_title(chart), y_title=_y_title(chart))
    draft.layout["meta"] = {"x": {"title": _axis_title(chart, beside=False)}}
    dashes = dashes_of([d.other_sizes for d in all_points]) if len(run_list) == 1 else {}
    for run, group, dash in zip(run_list, points_of_runs, cycle(DASHES), strict=False):
        draft.traces += _variants(chart, run, group, {**dashes, (): dash})
    draft.traces += [roof for run in run_list for roof in _roof(chart, run, roofs_of(run, roofs))]
    failed = [d for d in all_points if d.y is None and d.row.failure is not None]
    draft.traces += _failures(chart, failed)
    draft.fit_legend()
    if chart.one_hover:
        draft.layout["hovermode"] = "x unified"
        title = f"<b>{escape(chosen)} = %{{x:,d}}</b>"
        draft.x_axis |= {"hoverformat": ",d", "showspikes": False, "unifiedhovertitle": {"text": title}}
    _set_axes(draft, chart, points_of_runs, below=1.8 if failed else 1.25)
    _mark_cache(draft, chart)
    name_ends(draft, _ends(chart, points_of_runs, dashes), HEIGHT - _AROUND_PX)
    return draft.figure()


def _y_title(chart: _Chart) -> str:
    caches = f"{chart.headline} {format_caches(*(run.environment.device for run in chart.runs))}"
    if chart.quantity is not SPEED_UP:
        return f"{chart.quantity.name} ({caches}), {chart.unit}"
    baselines = {run.plan.baseline for run in chart.runs}
    baseline = format_variant(baselines.pop()) if len(baselines) == 1 else "the baseline"
    return escape(f"speed-up over {baseline} ({caches}), ×")


def _points(
    run: Run, quantity: Quantity, roofs: Sequence[Roof] | None, axis: str, headline: Headline
) -> list[_CasePoint]:
    problems = [p for p in problems_of([run]) if axis in p.sizes]
    axes = line_axes(problems, axis)
    other_sizes = {p.key: tuple((a, p.sizes[a]) for a in axes) for p in problems}
    return [
        _CasePoint(
            row,
            row.result.problem.sizes[axis],
            other_sizes[row.result.problem.key],
            *interval_of(quantity, row),
            hover(run, row, headline),
            brief_hover(run, row, quantity, headline),
        )
        for row in table_of(run, roofs, headline)
        if axis in row.result.problem.sizes
    ]


def _ends(chart: _Chart, points_of_runs: Sequence[Sequence[_CasePoint]], dashes: Dashes) -> list[End]:
    """The last point of each line of a variant with several lines, with the sizes that identify the line."""
    last: dict[tuple[str, str, str], End] = {}
    for run, group in zip(chart.runs, points_of_runs, strict=True):
        for point in sorted(group, key=lambda d: d.x):
            if point.other_sizes and point.y and point.row.figure is not None:
                label = line_name(point.other_sizes, dashes)
                last[run.id, point.row.result.variant, label] = End(point.x, point.y / chart.scale, escape(label))
    return list(last.values())


def _variants(chart: _Chart, run: Run, points: Sequence[_CasePoint], dashes: Dashes) -> Iterator[Props]:
    """A line for each variant and each size of the other axes. Wrong results are crosses without a line."""
    for variant in dict.fromkeys(d.row.result.variant for d in points):
        known = (d for d in points if d.row.result.variant == variant and d.y is not None)
        lines = grouped(known, key=lambda d: (False, d.other_sizes) if d.row.figure else (True, ()))
        first_of = {key[0]: key for key in reversed(lines)}
        for key, line in lines.items():
            wrong = key[0]
            yield _line(chart, line, dashes.get(key[1], dashes[()]), wrong=wrong) | {
                "name": trace_name(run, variant, chart.runs) + (" ✕ wrong" if wrong else ""),
                "legendgroup": f"{run.id} {variant} {wrong}",
                "showlegend": key == first_of[wrong],
            }


def _line(chart: _Chart, line: Sequence[_CasePoint], dash: str, *, wrong: bool) -> Props:
    ordered = sorted(line, key=lambda d: d.x)
    style = chart.style(ordered[0].row)
    return {
        "type": scatter_type(len(ordered)),
        "x": [d.x for d in ordered],
        "y": [d.y / chart.scale if d.y is not None else None for d in ordered],
        "mode": "markers" if wrong else "lines+markers",
        "line": {"color": style.colour, "width": 2, "dash": dash},
        "marker": {
            "color": style.colour,
            "size": 8,
            "symbol": "x-open" if wrong else style.marker,
            "line": {"width": 2 if wrong else 0, "color": style.colour},
        },
        "error_y": intervals(
            [d.y for d in ordered], [(d.low, d.high) for d in ordered], style.colour, scale=chart.scale, width=4
        ),
        "customdata": [d.row.result.problem.key for d in ordered],
        "hovertext": [chart.hover(d) for d in ordered],
        "hoverinfo": chart.hover_info,
    }


def _roof(chart: _Chart, run: Run, roofs: Sequence[Roof]) -> Iterator[Props]:
    """The best value that the measured roofs allow at each size. Its name is in the legend, where it covers no line."""
    best: dict[float, tuple[float, str, str]] = {}
    base_times = {
        r.problem.key: figure_of(r.timing, chart.headline) for r in run.results if r.variant == run.plan.baseline
    }
    for result in run.results:
        light = speed_of_light(result.problem, result.cost, roofs, chart.headline)
        base = base_times.get(result.problem.key)
        value = chart.quantity.of(result.cost, light.time_s, base.estimate if base else None) if light else None
        if light and value is not None and chart.axis in result.problem.sizes:
            name = escape(format_roof_name(light.roof))
            best[result.problem.sizes[chart.axis]] = value / chart.scale, name, result.problem.key
    if not best:
        return
    if len(best) == 1:  # A single size gets a short line, because a point would be invisible.
        best = {x * factor: value for x, value in best.items() for factor in (1 / 1.25, 1.25)}
    ys = [best[x][0] for x in sorted(best)]
    label = "speed of light" if chart.quantity in (TIME, SPEED_UP) else "measured roof"
    constant = f" {units.significant(ys[0])} {chart.unit}" if max(ys) <= min(ys) * 1.001 else ""
    yield {
        "type": "scatter",
        "x": sorted(best),
        "y": ys,
        "name": label + constant + run_suffix(run, chart.runs),
        "mode": "lines",
        "line": neutral_line(),
        "customdata": [best[x][2] for x in sorted(best)],
        "hovertext": [f"{label}: {units.significant(best[x][0])} {chart.unit} ({best[x][1]})" for x in sorted(best)],
        "hoverinfo": chart.hover_info,
    }


def _failures(chart: _Chart, failed: Sequence[_CasePoint]) -> Iterator[Props]:
    """A row for each variant at the bottom, in its colour: crosses at failed sizes, rings at sizes that were not measured."""
    levels = {v: i for i, v in enumerate(dict.fromkeys(d.row.result.variant for d in failed))}
    for name, symbol, rim, untried in (("✕ failed", "x", BAD, False), ("not measured", "circle-open", NEUTRAL, True)):
        marked = [d for d in failed if d.row.failure is not None and (d.row.failure.stage in _UNTRIED) is untried]
        if marked:
            yield {
                "type": "scatter",
                "x": [d.x for d in marked],
                "y": [0.03 + 0.045 * levels[d.row.result.variant] for d in marked],
                "yaxis": "y2",
                "name": name,
                "text": [escape(format_variant(d.row.result.variant)) for d in marked],
                "mode": "markers",
                "marker": {
                    "symbol": symbol,
                    "size": 9,
                    "color": [chart.style(d.row).colour for d in marked],
                    "line": {"width": 1, "color": rim},
                },
                "customdata": [d.row.result.problem.key for d in marked],
                "hovertext": [chart.hover(d) for d in marked],
                "hoverinfo": chart.hover_info,
            }


def _set_axes(draft: Draft, chart: _Chart, points_of_runs: Sequence[Sequence[_CasePoint]], *, below: float) -> None:
    """Set the ranges and ticks. `below` is the factor of space below the lines of a logarithmic chart for the row of crosses."""
    sizes = [p.sizes[chart.axis] for p in problems_of(chart.runs) if chart.axis in p.sizes]
    ticks, names = size_ticks(sizes)
    scale = "log" if min(sizes, default=1) > 0 else "linear"  # An offset may be 0.
    draft.x_axis |= {"type": scale, "tickvals": ticks, "ticktext": names, "showgrid": False}
    lines = [trace for trace in draft.traces if trace.get("yaxis") != "y2"]
    heights = _heights(lines)
    if not heights:
        draft.y_axis["rangemode"] = "tozero"
    elif chart.quantity.ratio:
        # At small sizes, the roof is far above what a launch allows. A whole roof in the frame would flatten the lines of the
        # variants, so the frame has its lowest part, as long as that is near.
        values = [d.y for points in points_of_runs for d in points if d.y]
        roofs = [trace for trace in lines if "error_y" not in trace]
        lowest_of_roofs = min(_heights(roofs), default=0.0)
        high = max(max(values), min(lowest_of_roofs, 3 * max(values)))
        draft.y_axis |= log_axis(min(values) / below, high * 1.25)
    elif chart.quantity is TIME or max(heights) >= _LOG_FROM * min(heights):
        draft.y_axis |= log_axis(min(heights) / below, max(heights) * 1.25)
    else:
        ends = [d.high / chart.scale for points in points_of_runs for d in points if d.y and d.high is not None]
        draft.y_axis["range"] = [0, end_of_axis(max(heights), 1.12, ends)]
    hidden = {"visible": False, "fixedrange": True}
    draft.layout["yaxis2"] = {"overlaying": "y", "range": [0, 1], "type": "linear", **hidden}


def _heights(lines: Sequence[Props]) -> list[float]:
    """All values of these lines that a logarithmic axis can show."""
    return [y for line in lines for y in line["y"] if y]


def _axis_title(chart: _Chart, *, beside: bool = True) -> str:
    """`beside`: also the sizes that vary together with the shown one, which tables and speech do not need."""
    problems = problems_of(chart.runs)
    op = catalogue().get(problems[0].op)
    caption = next((a.caption for a in op.axes if a.name == chart.axis), "") if op else ""
    tied = tied_axes(problems, chart.axis)
    fixed = [a for a in problems[0].sizes if a not in tied and len({p.sizes.get(a) for p in problems}) == 1]
    name = " = ".join(tied) + (f" ({caption})" if caption and len(tied) == 1 else "")
    also = companions(problems, chart.axis) if beside else ""
    parts = (name, also, format_sizes(problems[0], fixed) if fixed else "")
    return escape(" · ".join(filter(None, parts)))


def _mark_cache(draft: Draft, chart: _Chart) -> None:
    """A dotted line at the size whose bytes fill the last-level cache, with its label above the frame: the bytes of all smaller
    sizes fit."""
    run, device = chart.runs[0], chart.runs[0].environment.device
    points = [
        Point(r.problem.sizes[chart.axis], r.cost.moved_bytes)
        for r in run.results
        if r.cost and chart.axis in r.problem.sizes
    ]
    boundary = cache_boundary(points, device.last_level_cache_bytes)
    if boundary is None:
        return
    name = "L2" if device.kind == "cuda" else "last-level cache"
    draft.line_at(boundary, {"color": NEUTRAL, "dash": "dot", "width": 1})
    draft.note(
        f"◂ fits in the {name}, {units.size_bytes(device.last_level_cache_bytes)}",
        # On a logarithmic axis, Plotly places an annotation by its exponent, and a shape by its value.
        x=math.log10(boundary),
        y=1,
        xref="x",
        yref="paper",
        yanchor="bottom",
        font={"size": 11},
    )
