"""Bar chart of the time of each variant at one size."""

import math
from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Problem, Roof, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.roofline import SpeedOfLight, speed_of_light
from kernelviz.metrics.rows import Row
from kernelviz.plots.frame import (
    Draft,
    Props,
    Runs,
    end_of_axis,
    hover,
    intervals,
    listed,
    log_axis,
    neutral_line,
    nothing,
    only,
    problems_of,
    roofs_of,
    style_in,
    table_of,
    trace_name,
)
from kernelviz.plots.variant_styles import NEUTRAL, Style
from kernelviz.text import format_share
from kernelviz.text.failures import format_stage

_ROW_PX = 27
_FRAME_PX = 96
_MARKERS_TO = 0.045
"""The width of the column of markers as a fraction of the plot width: 12 px on a phone."""
_LABELS_FROM = 0.62
"""The start of the column of text as a fraction of the plot width. On a phone, it still has space for a time and a share."""
_LOG_FROM = 20.0
"""From this ratio of the longest to the shortest time on, the axis is logarithmic: the bars of all variants but the slowest
would be too short to compare."""
_LOG_SPACE = 1.6
"""Of a logarithmic axis, before the shortest time and after the longest."""
_MOST_OF_AXIS = 1e6
"""The longest time over the start of a logarithmic axis, at most: a file may claim any time, also none that a call can take."""
_SHORTEST_S = 1e-12


def time_by_variant(
    runs: Runs,
    problem: Problem | None = None,
    *,
    roofs: Sequence[Roof] | None = None,
    headline: Headline = "cold",
    beside: Sequence[str] = (),
) -> go.Figure:
    """A bar for each variant at `problem` (None: the last one with results), with its marker before it. The dashed line is the
    speed of light.

    To the right of each bar are its time and its share of the measured roof. The bar of a wrong result is hatched and labelled;
    that of a time that is not stable is pale and labelled; a failed case has a label only. The axis is logarithmic, and says so,
    if the slowest variant takes 20 times as long as the fastest.
    """
    run_list = listed(runs)
    chosen = problem or next(reversed(problems_of(run_list)), None)
    at_size = [(run, r) for run in run_list for r in table_of(only(run, chosen), roofs, headline)]
    if chosen is None or not at_size:
        return nothing("No variant has a result at this size yet.", height=_FRAME_PX + 2 * _ROW_PX)
    times = [_time_s(row) for _, row in at_size]
    light = _speed_of_light(at_size, roofs, headline)
    timed = [time_s for time_s in times if time_s > 0]
    logarithmic = max(timed, default=0.0) > max(_LOG_FROM * min(timed, default=0.0), _SHORTEST_S)
    scale, unit = units.time_unit(max(times))
    title = f"time, {unit}{', logarithmic axis' if logarithmic else ''}"
    draft = Draft(_FRAME_PX + _ROW_PX * len(at_size), x_title=title)
    styles = [style_in(run_list, row.result.problem.op, row.result.variant, beside) for _, row in at_size]
    draft.traces = [_bar(*one, run_list, scale, headline, style) for one, style in zip(at_size, styles, strict=True)]
    draft.traces += [_marker(*one, run_list, style) for one, style in zip(at_size, styles, strict=True)]
    for run, row in at_size:
        # The labels have a column of their own, where no bar or interval covers them.
        draft.note(
            _label(row, headline),
            x=_LABELS_FROM,
            xref="paper",
            xanchor="left",
            y=trace_name(run, row.result.variant, run_list),
            yref="y",
            font={"size": 12},
        )
    figures = [row.figure or row.wrong_figure for _, row in at_size]
    ends = [figure.high / scale for figure in figures if figure and figure.high is not None]
    draft.x_axis |= {
        "domain": [_MARKERS_TO, _LABELS_FROM - 0.02],
        "visible": any(times),  # without any time the axis has no meaning
    }
    if logarithmic:
        shortest_s = min(timed) if light is None else min(*timed, light.time_s)
        low = max(shortest_s / scale / _LOG_SPACE, max(timed) / scale / _MOST_OF_AXIS)
        draft.x_axis |= log_axis(low, max(timed) / scale * _LOG_SPACE)
    else:
        draft.x_axis["range"] = [0, end_of_axis((max(times) or scale) / scale, 1.1, ends)]
    if light is not None:
        _mark(draft, light, scale, unit, logarithmic=logarithmic)
    # The names stand before the column of markers, not at the start of the bars, where the markers would cover them.
    draft.y_axis |= {
        "autorange": "reversed",
        "showgrid": False,
        "anchor": "free",
        "position": 0,
        "ticklabelstandoff": 3,
    }
    draft.layout["showlegend"] = False
    draft.layout["xaxis2"] = {
        "domain": [0, _MARKERS_TO], "range": [-1, 1], "visible": False, "fixedrange": True, "anchor": "y",
    }  # fmt: skip
    return draft.figure()


def _time_s(row: Row) -> float:
    figure = row.figure or row.wrong_figure
    return figure.estimate if figure else 0.0


def _bar(run: Run, row: Row, run_list: Sequence[Run], scale: float, headline: Headline, style: Style) -> Props:
    figure = row.figure or row.wrong_figure
    name = trace_name(run, row.result.variant, run_list)
    return {
        "type": "bar",
        "x": [_time_s(row) / scale],
        "y": [name],
        "name": name,
        "orientation": "h",
        "width": 0.62,
        "marker": {
            "color": style.colour,
            "opacity": 1.0 if row.figure and not row.unstable else 0.45,
            "pattern": {"shape": "" if row.figure else "x", "size": 6},
        },
        "error_x": intervals(
            [_time_s(row)], [(figure.low, figure.high) if figure else (None, None)], NEUTRAL, scale=scale, width=4
        ),
        "customdata": [row.result.problem.key],
        "hovertext": [hover(run, row, headline)],
        "hoverinfo": "text",
    }


def _marker(run: Run, row: Row, run_list: Sequence[Run], style: Style) -> Props:
    """The marker of the variant, in a column of its own between the names and the bars."""
    return {
        "type": "scatter",
        "x": [0],
        "y": [trace_name(run, row.result.variant, run_list)],
        "xaxis": "x2",
        "mode": "markers",
        "marker": {"color": style.colour, "symbol": style.marker, "size": 10},
        "hoverinfo": "skip",
    }


def _label(row: Row, headline: Headline) -> str:
    """Time and share of the roof, or the stage of the failure."""
    if row.unstable:
        return "not stable"  # the hover text has both levels
    if row.figure is not None:
        share = "" if row.efficiency is None else f" · {escape(format_share(row.efficiency))}"
        return f"{units.seconds(row.figure.estimate)}{share}"
    stage = str(format_stage(row.failure)) if row.failure else f"no {headline} time"
    time = f" · {units.seconds(row.wrong_figure.estimate)}" if row.wrong_figure else ""
    return escape(f"✕ {stage}{time}")


def _speed_of_light(
    at_size: Sequence[tuple[Run, Row]], roofs: Sequence[Roof] | None, headline: Headline
) -> SpeedOfLight | None:
    run, row = at_size[0]
    cost = next((r.result.cost for _, r in at_size if r.result.cost), None)
    return speed_of_light(row.result.problem, cost, roofs_of(run, roofs), headline)


def _mark(draft: Draft, light: SpeedOfLight, scale: float, unit: str, *, logarithmic: bool) -> None:
    """A dashed line at the speed of light, with its label above the frame, where it covers neither line nor bar."""
    x = light.time_s / scale
    low, high = draft.x_axis["range"]
    # The place of a text on a logarithmic axis is a logarithm, that of a line is not.
    at = math.log10(max(x, 10**low)) if logarithmic else x
    draft.line_at(x, neutral_line())
    draft.note(
        f"speed of light {units.significant(x)} {unit} ({light.bound}-bound)",
        x=at,
        y=1,
        yref="paper",
        yanchor="bottom",
        xanchor="left" if at - low < (high - low) / 2.2 else "center",
        font={"size": 11},
    )
