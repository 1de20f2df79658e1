"""The time of one case from run to run: each run with its interval, the levels, and their changes."""

from html import escape

import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.metrics.trend import Point, Trend, levels_of
from kernelviz.plots.frame import Draft, Props, neutral_line, nothing
from kernelviz.plots.variant_styles import style_of

HEIGHT = 300


def time_by_run(trend: Trend, op: str, variant: str) -> go.Figure:
    """Time by run, equally spaced (by date, nights without a run would be gaps). Lines: levels. Dotted: changes of the level."""
    if not trend.points:
        return nothing("No run has a correct time of this case yet.", height=HEIGHT)
    scale, unit = units.time_unit(trend.level_s)
    draft = Draft(HEIGHT, x_title="runs, oldest first", y_title=f"time, {unit}")
    draft.traces.append(_runs(trend, op, variant, scale, unit))
    draft.traces.append(_levels(trend, scale))
    for change in trend.changes:
        draft.line_at(change.index - 0.5, neutral_line("dot", 1))
        sign = "▼" if change.ratio > 1 else "▲"
        draft.note(
            f"{sign} {units.percent(abs(change.ratio - 1), 1)} {change.direction}",
            x=change.index - 0.5, y=1, yref="paper", yanchor="bottom", xanchor="left", font={"size": 11},
        )  # fmt: skip
    count = len(trend.points)
    step = -(-count // 8)
    positions = list(range(count - 1, -1, -step))[::-1]
    days = [trend.points[i].at[:10] for i in positions]
    draft.x_axis |= {"tickvals": positions, "ticktext": days, "range": [-0.6, count - 0.4], "showgrid": False}
    draft.layout["showlegend"] = False
    return draft.figure()


def _runs(trend: Trend, op: str, variant: str, scale: float, unit: str) -> Props:
    style = style_of(op, variant)
    points = trend.points
    return {
        "type": "scatter",
        "x": list(range(len(points))),
        "y": [p.time_s / scale for p in points],
        "mode": "markers",
        "marker": {"color": style.colour, "symbol": style.marker, "size": 8},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [0.0 if p.high_s is None else max(p.high_s - p.time_s, 0.0) / scale for p in points],
            "arrayminus": [0.0 if p.low_s is None else max(p.time_s - p.low_s, 0.0) / scale for p in points],
            "thickness": 1.5,
            "width": 3,
            "color": style.colour,
        },
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
    xs: list[float | None] = []
    ys: list[float | None] = []
    levels = levels_of(trend)
    for number, (first, time_s) in enumerate(levels):
        end = levels[number + 1][0] if number + 1 < len(levels) else len(trend.points)
        xs += [first - 0.45, end - 0.55, None]
        ys += [time_s / scale, time_s / scale, None]
    return {"type": "scatter", "x": xs, "y": ys, "mode": "lines", "line": neutral_line("solid", 2), "hoverinfo": "skip"}
