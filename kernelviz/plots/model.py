"""The charts of a layer: the time of its parts as stacked bars, and a traffic mix by the share of decoded tokens."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.core.workload import WorkloadResult
from kernelviz.metrics.layer_times import WAYS, PartTimes, Way
from kernelviz.metrics.layer_truth import groups_of, layer_time
from kernelviz.metrics.traffic_mix import PhaseTimes, flips
from kernelviz.plots.frame import Draft, Props, nothing
from kernelviz.plots.variant_styles import COLOURS, MARKERS, NEUTRAL
from kernelviz.text.model import WAYS as WAY_TEXTS
from kernelviz.text.model import format_part, format_parts

_PATTERNS = ("", "/", "x", ".", "\\", "+", "-", "|")
"""Parts differ by their fill as well as by their colour."""
_REST, _WHOLE = "not explained", "not split into parts"
_ROW_PX, _FRAME_PX, _ENTRY_PX = 46, 110, 20
"""Of a bar, of what is round the bars, and of a line of the legend, which has two entries."""
_SHARES = 41
_LETTER_SHARE = 0.038
"""Of the longest bar: so wide is a letter of a label at the end of a bar on a phone, where bars have about 180 pixels."""
_MOST_STEPS = 8
"""Distances between ticks."""


def time_by_part(
    parts: Sequence[PartTimes], truth: Sequence[WorkloadResult] = (), *, on_host: bool = False
) -> go.Figure:
    """A bar for each way, stacked by part, and one for each variant of the layer as one module with its parts and the rest. A
    part without a time has no segment: the label at the bar says that the bar is incomplete. Parts that the layer computes
    together have one segment, striped in the colours of the two largest. `on_host`: times of a processor."""
    whole = [(result, layer) for result in truth if (layer := layer_time(result)) is not None]
    times = [time.figure.estimate for part in parts for way in WAYS if (time := part.of(way)) and time.figure]
    if not times and not whole:
        return nothing("No part has a time yet. Measure the layer.", height=_FRAME_PX + _ROW_PX)
    sums = {way: sum(t.figure.estimate for p in parts if (t := p.of(way)) and t.figure) for way in WAYS}
    clock = "time by the host's clock" if on_host else "device time"
    scale, unit = units.time_unit(max([*sums.values(), *(layer.estimate for _, layer in whole)]))
    draft = Draft(_FRAME_PX, x_title=f"{clock} of one layer, {unit}")
    for number, part in enumerate(parts):
        draft.traces.append(_segments(part, number, scale))
    names = [part.name for part in parts]
    listed = {part.name for part in parts if any(part.of(way) is not None for way in WAYS)}  # names of the legend
    alone, ends = _alone(truth), list[_End]()
    for result, layer in whole:
        row, total = _module(result), 0.0
        for group in groups_of(result):
            if group.time is None:
                continue
            total += group.time.estimate
            name = str(format_parts(group.parts))
            largest = sorted(group.parts, key=lambda part: -alone.get(part, 0.0))
            numbers = [names.index(part) for part in largest if part in names]
            value, key = group.time.estimate / scale, " ".join(group.parts)
            draft.traces.append(_bar(row, name, value, numbers, f"{row}: {name}", in_legend=key not in listed))
            listed.add(key)
        if layer.estimate > total:
            rest, name = (layer.estimate - total) / scale, _REST if total else _WHOLE
            draft.traces.append(_bar(row, name, rest, (), f"{row}: {name}", in_legend=name not in listed))
            listed.add(name)
        ends.append(_End(row, max(layer.estimate, total) / scale, (units.seconds(layer.estimate),)))
    for way in WAYS:
        have = sum(part.of(way) is not None for part in parts)
        said = units.seconds(sums[way]) if sums[way] else "no time"
        lines = [said] if have == len(parts) else [f"incomplete: {said}", f"{have} of {len(parts)} parts"]
        ends.append(_End(WAY_TEXTS[way], sums[way] / scale, tuple(lines)))
    for end in ends:
        draft.note("<br>".join(map(escape, end.lines)), x=end.x, y=end.row, xanchor="left", xshift=4, align="left")
    most = max(end.x for end in ends)
    draft.x_axis |= {
        "rangemode": "tozero",
        "range": [0, max(end.x + most * _LETTER_SHARE * max(map(len, end.lines)) for end in ends)],
        "tickvals": linear_ticks(most),
    }
    rows = [*WAY_TEXTS.values(), *(_module(result) for result, _ in whole)]
    entries = sum(trace["showlegend"] for trace in draft.traces)
    draft.y_axis |= {
        "type": "category",
        "categoryorder": "array",
        "categoryarray": rows,
        "range": [len(rows) - 0.5, -0.5],
        "showgrid": False,
    }
    draft.layout |= {
        "height": _FRAME_PX + _ROW_PX * len(rows) + _ENTRY_PX * math.ceil(entries / 2),
        "barmode": "stack",
        "showlegend": True,
        "legend": {"orientation": "h", "y": -0.25, "yanchor": "top", "traceorder": "normal", "font": {"size": 11}},
    }
    return draft.figure()


@dataclass(frozen=True, slots=True)
class _End:
    """Where a bar ends, and the lines of its label."""

    row: str
    x: float
    lines: tuple[str, ...]


def linear_ticks(most: float) -> list[float]:
    """From 0 in equal steps of 1, 2 or 5 times a power of ten, to the first tick from `most` on; at most eight.

    >>> linear_ticks(2.983), linear_ticks(657.0)
    ([0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0], [0.0, 100.0, 200.0, 300.0, 400.0, 500.0, 600.0, 700.0])
    """
    power = 10.0 ** math.floor(math.log10(most))
    step = next(power * f for f in (0.1, 0.2, 0.5, 1.0, 2.0) if most / (power * f) <= _MOST_STEPS)
    return [round(number * step, 9) for number in range(math.ceil(most / step - 1e-9) + 1)]


def _module(result: WorkloadResult) -> str:
    return {"eager": "whole layer, eager", "compiled": "whole layer, compiled"}.get(
        result.case.variant, result.case.variant
    )


def _segments(part: PartTimes, number: int, scale: float) -> Props:
    rows, values, texts = [], [], []
    for way in WAYS:
        time = part.of(way)
        if time is not None and time.figure is not None:
            rows.append(WAY_TEXTS[way])
            values.append(time.figure.estimate / scale)
            texts.append(
                f"<b>{escape(str(format_part(part.name)))}</b><br>{WAY_TEXTS[way]}: {escape(time.variant)}<br>"
                f"{escape(units.seconds(time.figure.estimate))}"
            )
    return {
        **_bar("", str(format_part(part.name)), 0.0, (number,), "", in_legend=bool(values)),
        "x": values,
        "y": rows,
        "hovertext": texts,
    }


def _bar(row: str, name: str, value: float, numbers: Sequence[int], text: str, *, in_legend: bool) -> Props:
    """A segment. `numbers`: of its parts among all parts, the largest first; the first two have their colours in it."""
    pattern: Props = {"shape": "x", "fgcolor": "#FFFFFF", "size": 5, "solidity": 0.25}
    if len(numbers) == 1:
        pattern["shape"] = _PATTERNS[numbers[0] % len(_PATTERNS)]
    elif numbers:
        pattern = {
            "shape": "|",
            "fgcolor": COLOURS[numbers[1] % len(COLOURS)],
            "fgopacity": 1.0,
            "size": 12,
            "solidity": 0.5,
        }
    return {
        "type": "bar",
        "orientation": "h",
        "x": [value],
        "y": [row],
        "name": escape(name),
        "width": 0.66,
        "marker": {
            "color": COLOURS[numbers[0] % len(COLOURS)] if numbers else NEUTRAL,
            "pattern": {**pattern, "fillmode": "overlay"},
            "line": {"width": 1, "color": "#FFFFFF"},
        },
        "hovertext": [escape(text)],
        "hoverinfo": "text",
        "showlegend": in_legend,
    }


def _alone(truth: Sequence[WorkloadResult]) -> dict[str, float]:
    """Seconds of the parts that a variant measured alone."""
    return {
        group.parts[0]: group.time.estimate
        for result in truth
        for group in groups_of(result)
        if len(group.parts) == 1 and group.time is not None
    }


def time_by_share(variants: Sequence[PhaseTimes], share: float, title: str = "") -> go.Figure:
    """Seconds for a token by the share of decoded tokens, a line for each variant or way; a line at the chosen share, and marks
    where the fastest one changes."""
    if not variants:
        return nothing("Nothing has a time in both phases yet. Measure prefill and decoding.", height=300)
    scale, unit = units.time_unit(max(max(v.at(0.0), v.at(1.0)) for v in variants))
    draft = Draft(340, x_title="share of decoded tokens, %", y_title=f"{title or 'time'} for a token, {unit}")
    shares = [number / (_SHARES - 1) for number in range(_SHARES)]
    for number, variant in enumerate(variants):
        label = WAY_TEXTS[way] if (way := _way(variant.name)) is not None else variant.name
        draft.traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "x": [100 * s for s in shares],
                "y": [variant.at(s) / scale for s in shares],
                "name": escape(label),
                "line": {"color": COLOURS[number % len(COLOURS)], "width": 2},
                "marker": {"symbol": MARKERS[number % len(MARKERS)], "size": 8, "maxdisplayed": 9},
                "hovertext": [
                    f"{escape(label)}: {escape(units.seconds(variant.at(s)))} at {100 * s:.0f} %" for s in shares
                ],
                "hoverinfo": "text",
            }
        )
    at = {variant.name: variant for variant in variants}
    for flip in flips(variants):
        draft.note("change", x=100 * flip.share, y=at[flip.after].at(flip.share) / scale, yanchor="top", yshift=-6)
    draft.line_at(100 * share, {"dash": "dash", "width": 1.5, "color": "#7F8A8A"})
    draft.x_axis |= {"range": [0, 100]}
    draft.y_axis |= {"rangemode": "tozero"}
    draft.layout |= {"showlegend": True, "legend": {"orientation": "h", "y": -0.25, "yanchor": "top"}}
    return draft.figure()


def _way(name: str) -> Way | None:
    return next((way for way in WAYS if way == name), None)
