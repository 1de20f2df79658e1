"""The speed-up by fusing against a size: measured with its interval, and predicted in two ways."""

from collections.abc import Sequence
from html import escape
from itertools import pairwise
from math import log10

import plotly.graph_objects as go

from kernelviz.metrics.fusion import FusionRow
from kernelviz.plots.frame import (
    Draft,
    Props,
    decade_ticks,
    even_ticks,
    folded,
    intervals,
    neutral_line,
    nothing,
    size_ticks,
)
from kernelviz.plots.variant_styles import NEUTRAL
from kernelviz.text import format_sizes, format_time, format_variant
from kernelviz.text.fusion import (
    describe_prediction_b,
    format_bytes,
    format_prediction_with_error,
    format_speed_up,
    join_reasons,
)

HEIGHT = 380
_MEASURED, _B, _A = "#2E7D6B", "#C77B1E", "#7A5BC7"
"""The colours of the three lines; their markers and dashes differ, too."""
_SPACE = 1.25
"""Of the vertical axis, beyond the smallest and the largest value."""


def fusion_speed_up_by_size(rows: Sequence[FusionRow], axis: str | None = None) -> go.Figure:
    """Speed-up of the fused variant over the fastest composition by the size of an axis, both logarithmic: measured, prediction
    B and prediction A. Dotted lines: where the intermediate tensor has the size of the last-level cache and four times that.
    """
    line = sorted((row for row in rows if row.fastest), key=lambda row: _size(row, axis))
    values = [v for row in line for v in (_measured(row), row.predicted_a, row.predicted_b) if v is not None and v > 0]
    if not line or not values:
        return nothing("No composition and fused variant with correct times here yet. Measure this op.", height=HEIGHT)
    along = axis or next(iter(line[0].problem.sizes))
    draft = Draft(HEIGHT, x_title=along, y_title="speed-up by fusing, ×")
    draft.traces = [
        {**_line(line, axis, [row.predicted_a for row in line], "prediction A: costs and roofs", _A, "square", "dot"),
         "hovertext": [_hover_a(row) for row in line]},
        {**_line(line, axis, [row.predicted_b for row in line], "prediction B: time of the steps", _B, "diamond", "dash"),
         "hovertext": [_hover_b(row) for row in line]},
        {**_line(line, axis, [_measured(row) for row in line], "measured", _MEASURED, "circle", "solid"),
         "hovertext": [_hover_measured(row) for row in line],
         "customdata": [row.problem.key for row in line],
         "error_y": intervals([_measured(row) for row in line], [_ends(row) for row in line], _MEASURED)},
    ]  # fmt: skip
    ticks, labels = size_ticks([_size(row, axis) for row in line])
    draft.x_axis |= {"type": "log", "tickvals": ticks, "ticktext": labels}
    _scale(draft, values)
    draft.line(x0=0, x1=1, xref="paper", y0=1, y1=1, line=neutral_line("solid", 1))
    for times, label in ((1, "1 × cache"), (4, "4 × cache")):
        at = _crossing(line, axis, times)
        if at is not None:
            draft.line_at(at, neutral_line("dot", 1))
            # Annotations of a logarithmic axis are in its exponents.
            draft.note(label, x=log10(at), y=1, yref="paper", yanchor="bottom", font={"size": 11, "color": NEUTRAL})
    return draft.figure()


def _scale(draft: Draft, values: Sequence[float]) -> None:
    low, high = min(1.0, *values) / _SPACE, max(1.0, *values) * _SPACE
    ticks, labels = decade_ticks(low, high, 1.0)
    if len(ticks) < 3:
        ticks, labels = even_ticks(low, high, 1.0)
    draft.y_axis |= {"type": "log", "range": [log10(low), log10(high)], "tickvals": ticks, "ticktext": labels}


def _line(
    rows: Sequence[FusionRow],
    axis: str | None,
    values: Sequence[float | None],
    name: str,
    colour: str,
    marker: str,
    dash: str,
) -> Props:
    return {
        "type": "scatter",
        "x": [_size(row, axis) for row in rows],
        "y": list(values),
        "name": name,
        "mode": "lines+markers",
        "line": {"color": colour, "dash": dash, "width": 2},
        "marker": {"color": colour, "symbol": marker, "size": 9},
        "hoverinfo": "text",
    }


def _size(row: FusionRow, axis: str | None) -> int:
    return row.problem.sizes[axis] if axis is not None else next(iter(row.problem.sizes.values()))


def _measured(row: FusionRow) -> float | None:
    return row.speed_up.estimate if row.speed_up is not None else None


def _ends(row: FusionRow) -> tuple[float | None, float | None]:
    return (row.speed_up.low, row.speed_up.high) if row.speed_up is not None else (None, None)


def _crossing(rows: Sequence[FusionRow], axis: str | None, times: int) -> float | None:
    """The size at which the intermediate tensor has so many times the cache, between two sizes of the line; None if it is at no
    size between them. The tensor grows in proportion to the size between two of them."""
    for first, second in pairwise(rows):
        cache = first.cache_bytes
        if cache is None or not first.intermediate_bytes < times * cache <= second.intermediate_bytes:
            continue
        share = log10(times * cache / first.intermediate_bytes) / log10(
            second.intermediate_bytes / first.intermediate_bytes
        )
        low, high = _size(first, axis), _size(second, axis)
        return float(low * (high / low) ** share)
    return None


def _head(row: FusionRow) -> list[str]:
    return [f"<b>{escape(format_sizes(row.problem))}</b>"]


def _hover_measured(row: FusionRow) -> str:
    fused = (
        [f"{escape(format_variant(row.fused.variant))}: {format_time(row.fused_figure)}"]
        if row.fused and row.fused_figure
        else []
    )
    lines = [
        *_head(row),
        escape(f"measured {format_speed_up(row.speed_up)}"),
        escape(f"{format_variant(row.unfused.variant)}: {format_time(row.unfused_figure)}"),
        *fused,
        escape(f"intermediate tensor {format_bytes(row.intermediate_bytes)}"),
    ]
    return "<br>".join(lines)


def _hover_b(row: FusionRow) -> str:
    parts = [] if isinstance(row.b, str) else folded(str(describe_prediction_b(row.b)), 78)
    return _hover_prediction(row, row.predicted_b, row.error_b, [*parts, *folded(str(join_reasons(row.reasons_b)), 78)])


def _hover_a(row: FusionRow) -> str:
    return _hover_prediction(row, row.predicted_a, row.error_a, folded(str(join_reasons(row.reasons_a)), 78))


def _hover_prediction(row: FusionRow, value: float | None, error: float | None, more: list[str]) -> str:
    return "<br>".join([*_head(row), f"predicted {format_prediction_with_error(value, error)}", *more])
