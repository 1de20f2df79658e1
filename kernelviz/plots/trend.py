"""The time of one case from run to run: each run with its interval, the levels, and their changes."""

from collections.abc import Sequence
from html import escape

import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.metrics.trend import Point, Trend, levels_of
from kernelviz.plots.frame import Draft, Props, evenly_spaced, intervals, neutral_line, nothing
from kernelviz.plots.variant_styles import Style, style_of

HEIGHT = 300
_MOST_TICKS = 8


def time_by_run(trend: Trend, op: str, variant: str, *, beside: Sequence[str] = ()) -> go.Figure:
    """Time by run. Lines are levels, dotted lines are changes of the level. `beside`: the variants of the newest run.

    Runs are equally spaced. With an axis by date, nights without a run would be gaps.
    """
    if not trend.points:
        return nothing("No run has a correct time of this case yet.", height=HEIGHT)
    scale, unit = units.time_unit(trend.level_s)
    draft = Draft(HEIGHT, x_title="runs, oldest first", y_title=f"time, {unit}")
    draft.traces = [_runs(trend, style_of(op, variant, beside), scale, unit), _levels(trend, scale)]
    for change in trend.changes:
        draft.line_at(change.index - 0.5, neutral_line("dot", 1))
        sign = "▼" if change.ratio > 1 else "▲"
        draft.note(
            f"{sign} {units.difference(change.ratio, change.direction)}",
            x=change.index - 0.5, y=1, yref="paper", yanchor="bottom", xanchor="left", font={"size": 11},
        )  # fmt: skip
    count = len(trend.points)
    positions = evenly_spaced(range(count), _MOST_TICKS)
    days = [trend.points[i].at[:10] for i in positions]
    draft.x_axis |= {"tickvals": positions, "ticktext": days, "range": [-0.6, count - 0.4], "showgrid": False}
    draft.layout["showlegend"] = False
    draft.layout["meta"] = {"x": {"title": "measured at", "labels": [point.at for point in trend.points]}}
    return draft.figure()


def _runs(trend: Trend, style: Style, scale: float, unit: str) -> Props:
    points = trend.points
    return {
        "type": "scatter",
        "x": list(range(len(points))),
        "y": [p.time_s / scale for p in points],
        "mode": "markers",
        "marker": {"color": style.colour, "symbol": style.marker, "size": 8},
        "error_y": intervals(
            [p.time_s for p in points], [(p.low_s, p.high_s) for p in points], style.colour, scale=scale
        ),
        "customdata": [p.run_id for p in points],
        "hovertext": [_hover(p, scale, unit) for p in points],
        "hoverinfo": "text",
    }


def _hover(point: Point, scale: float, unit: str) -> str:
    source = dict(point.provenance).get("source")
    lines = [
        f"<b>{escape(point.run_id)}</b>",
        escape(point.at[:16].replace("T", " ")),
        f"{units.significant(point.time_s / scale)} {unit}",
        *([f"source {escape(source)}"] if source else []),
    ]
    return "<br>".join(lines)


def _levels(trend: Trend, scale: float) -> Props:
    """One line, broken between levels."""
    levels = levels_of(trend)
    ends = [*(first for first, _ in levels[1:]), len(trend.points)]
    xs = [x for (first, _), end in zip(levels, ends, strict=True) for x in (first - 0.45, end - 0.55, None)]
    ys = [y for _, time_s in levels for y in (time_s / scale, time_s / scale, None)]
    return {"type": "scatter", "x": xs, "y": ys, "mode": "lines", "line": neutral_line("solid", 2), "hoverinfo": "skip"}
