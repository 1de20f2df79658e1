"""The roofline of many cases, runs and GPUs: points under the roofs that they are compared with.

Nothing is labelled inside the plot, so nothing overlaps. The names of lines and variants are below it; everything else is in the
hover text and in the table beside it. Williams, Waterman, Patterson: Roofline (CACM 52(4), 2009).
"""

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import cycle

import plotly.graph_objects as go

from kernelviz.core import DataSheetRoof, Roof, units
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.placement import Placed
from kernelviz.plots.frame import decade_ticks, folded, framed, neutral_line, nothing
from kernelviz.plots.roofline import under
from kernelviz.plots.variant_styles import NEUTRAL, style_of, with_filling
from kernelviz.text import (
    describe_ceiling,
    describe_distance,
    describe_evidence,
    format_ceiling,
    format_level,
    format_limiter,
    format_origin,
    format_rates,
    format_roof_name,
    format_sizes,
    format_time,
    format_variant,
)

_PLOT_PX, _AXIS_PX, _TOP_PX = 360, 64, 34
_LINE_PX = 21
"""Height of a legend line. On a phone each variant has one; with less space the plot would shrink and the legends overlap."""
HEIGHT = 480
"""Height of an empty chart, and of the table beside the chart."""
_FONT = "Arial, Helvetica, sans-serif"
"""A saved picture does not contain the fonts of the page, so it uses a font that is available everywhere."""
MOST_NAMED = 18
"""With more variants the legend would be longer than the plot; hover text and the table then name them."""
_DASHES = (
    "solid",
    "dash",
    "dot",
    "dashdot",
    "longdash",
    "longdashdot",
    "2px,8px",
    "16px,3px,3px,3px,3px,3px",
    "10px,10px",
)
_FILLS = ("", "-open", "-dot", "-open-dot")
"""Marker fillings by run: a variant keeps its colour and marker, and the filling identifies the run."""
_FAINT = 0.22
_SMALLEST_PX, _MARKER_PX, _LARGEST_PX = 5.0, 9.0, 15.0
"""The size of a marker: of the problem that moves the fewest bytes, of equal problems, and of the one that moves the most."""
_SI = ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, ""))


@dataclass(frozen=True, slots=True)
class Line:
    """A roof of a device: its value in bytes/s or flop/s, and its label."""

    device: str
    value: float
    is_ceiling: bool
    label: str


def rates_by_intensity(cases: Sequence[Placed], *, group: str | None = None, case: str | None = None) -> go.Figure:
    """Arithmetic rate by arithmetic intensity, both logarithmic, under the roofs of the cases.

    The size of a marker grows with the bytes that its problem moves, because many sizes of an op have the same intensity.

    `group` is the op and variant (`Placed.group`) to highlight; all other points become faint. `case` does the same for one case
    (`Placed.key`).
    """
    points = [c for c in cases if c.drawable]
    if not points:
        return nothing(
            "None of these cases does arithmetic, so none has a point: see the table."
            if cases
            else "No case to draw. Choose another run.",
            height=HEIGHT,
        )
    figure = go.Figure()
    lines = lines_of(points)
    x_range = frame_of([*(c.intensity or 1.0 for c in points), *_ridges(lines)], 4, 4)
    figure.add_traces(
        [_line(line, lines, dash, [10**e for e in x_range]) for line, dash in zip(lines, cycle(_DASHES), strict=False)]
    )
    fills = dict(zip(dict.fromkeys(c.run_id for c in points), cycle(_FILLS), strict=False))
    traces = grouped(points, key=lambda c: (c.run_id, c.group))
    figure.add_traces(
        [_points(mine, points, fills[run_id], group, case, len(traces)) for (run_id, _), mine in traces.items()]
    )
    figure.add_traces(_size_legend(points))
    _axes(figure, points, x_range, lines)
    if not lines:
        figure.add_annotation(text="the roofs of this device are unknown", x=0, y=1, xref="paper", yref="paper",
                              xanchor="left", yanchor="top", xshift=6, showarrow=False)  # fmt: skip
    _add_legends(figure)
    return figure


def _add_legends(figure: go.Figure) -> None:
    """Add the legends: roofs below the plot and variants below the roofs, each with the space that it needs on a phone."""
    named = [t for t in figure.data if t.showlegend is not False]
    roofs_px = _LINE_PX * sum(1 + str(t.name).count("<br>") for t in named if t.mode == "lines")
    variants_px = _LINE_PX * sum(t.mode == "markers" and t.legend != "legend3" for t in named)
    side = {"orientation": "h", "x": 0, "xanchor": "left", "title": {"text": ""}}
    sizes_px = _LINE_PX * sum(t.legend == "legend3" for t in named)
    below_px = _AXIS_PX + roofs_px + variants_px + sizes_px
    figure.update_layout(
        showlegend=True,
        height=_TOP_PX + _PLOT_PX + below_px,
        margin={"t": _TOP_PX, "b": below_px},
        legend={**side, "orientation": "v", "y": -_AXIS_PX / _PLOT_PX, "yanchor": "top"},
        legend2={**side, "y": -(_AXIS_PX + roofs_px + sizes_px) / _PLOT_PX, "yanchor": "top", "itemsizing": "constant"},
        legend3={**side, "y": -(_AXIS_PX + roofs_px) / _PLOT_PX, "yanchor": "top", "itemsizing": "trace"},
        font={"family": _FONT},
    )


def lines_of(cases: Sequence[Placed]) -> tuple[Line, ...]:
    """The roofs of the cases: for each device the highest bandwidth of each memory level, each arithmetic rate, and the further
    ceilings of problems of arithmetic. The issue rate is drawn for the clock of the case with the highest rate."""
    lights = [(case.device, case.light) for case in cases if case.light is not None]
    slopes = grouped(((device, light.memory) for device, light in lights), key=lambda slope: (slope[0], slope[1].level))
    ceilings = {(device, light.compute.key): light.compute for device, light in lights if light.compute is not None}
    return (*(_slope(d, level, [roof for _, roof in group]) for (d, level), group in slopes.items()),
            *(_ceiling(d, roof) for (d, _), roof in ceilings.items()), *_further_ceilings(cases))  # fmt: skip


def _further_ceilings(cases: Sequence[Placed]) -> tuple[Line, ...]:
    """The ceilings of each device and precision, of the case with the highest rate. The data sheet is left out where the cases
    are compared with it anyway."""
    further: dict[tuple[str, str, str], Line] = {}
    for case in sorted(cases, key=lambda c: c.rate_flop_per_s or 0.0, reverse=True):
        on_sheet = case.light is not None and isinstance(case.light.compute, DataSheetRoof)
        for ceiling in case.ceilings:
            if not (on_sheet and ceiling.kind == "data_sheet"):
                line = Line(case.device, ceiling.rate_flop_per_s, True, format_ceiling(ceiling))
                further.setdefault((case.device, ceiling.precision, ceiling.kind), line)
    return tuple(further.values())


def _slope(device: str, level: str | None, roofs: Sequence[Roof]) -> Line:
    """The memory roof. Bandwidths of several read:write mixes and sizes differ by a few percent, which is not visible over many
    decades: only the highest is drawn, but each case is compared with its own."""
    values = [r.bandwidth_bytes_per_s or 0.0 for r in roofs]
    low, high = (units.rate(v, "B/s", 3) for v in (min(values), max(values)))
    rate = f"{low} to {high} by the read:write mixes and sizes of these cases" if low != high else high
    return Line(device, max(values), False, f"{_level_name(level, roofs[0])} {rate}{format_origin(roofs[0])}")


def _level_name(level: str | None, roof: Roof) -> str:
    if level != "l2":
        return "DRAM"
    return "caches" if roof.timer == "host" else "L2"  # Only the roofs of a CPU are measured by the host clock.


def _ceiling(device: str, roof: Roof) -> Line:
    value = roof.rate_flop_per_s or 0.0
    return Line(device, value, True, f"{format_roof_name(roof)} {units.rate(value, 'FLOP/s', 3)}{format_origin(roof)}")


def _ridges(lines: Sequence[Line]) -> list[float]:
    """The ridge points. The frame contains them, so that the memory-bound range is visible."""
    slopes: dict[str, float] = {}
    for line in lines:
        if not line.is_ceiling:
            slopes[line.device] = max(line.value, slopes.get(line.device, 0.0))
    # Without measured roofs, a device has ceilings of its data sheet but no memory roof, and so no ridge.
    return [line.value / slopes[line.device] for line in lines if line.is_ceiling and line.device in slopes]


def _line(line: Line, lines: Sequence[Line], dash: str, ends: Sequence[float]) -> go.Scatter:
    """A memory roof up to the highest compute roof of its device, or a compute roof from the highest bandwidth on."""
    peaks, slopes = (
        [x.value for x in lines if x.device == line.device and x.is_ceiling is is_peak] for is_peak in (True, False)
    )
    low, high = ends[0] / 1e3, ends[1] * 1e3
    if line.is_ceiling:
        start = line.value / max(slopes) if slopes else low
        xs, ys = [start, max(high, start * 10)], [line.value, line.value]
    else:
        # The level part is left out, because the compute roof has a line of its own.
        xs, ys = (ends[:2] for ends in under(low, high, line.value, max(peaks, default=None)))
    name = line.label + (f" · {line.device}" if len({x.device for x in lines}) > 1 else "")
    return go.Scatter(x=xs, y=ys, mode="lines", name="<br>".join(escape(w) for w in textwrap.wrap(name, 46)),
                      line=neutral_line(dash, 2), hovertext=escape(name), hoverinfo="text", legendgroup="roofs")  # fmt: skip


def _points(
    mine: Sequence[Placed], points: Sequence[Placed], fill: str, group: str | None, case: str | None, traces: int
) -> go.Scatter:
    # Highlighted points come first, because the legend shows the style of the first point; then large ones, which would
    # cover small ones.
    mine = sorted(mine, key=lambda c: (not _stays(c, group, case), -_moved_bytes(c)))
    first = mine[0]
    style = style_of(first.problem.op, first.variant, first.beside)
    highlighted = [_stays(c, group, case) for c in mine]
    # Points are made faint by colour and not by opacity, because a legend shows the mean opacity.
    colours = [style.colour if stays else _faint(style.colour) for stays in highlighted]
    return go.Scatter(
        x=[c.intensity for c in mine],
        y=[c.rate_flop_per_s for c in mine],
        name=escape(format_trace(first, points)),
        mode="markers",
        legend="legend2",
        showlegend=traces <= MOST_NAMED and any(highlighted),
        marker={
            "color": colours,
            "symbol": with_filling(style.marker, fill),
            "opacity": 1.0,
            "size": [_LARGEST_PX + 4 if c.key == case else _marker_px(c, points) for c in mine],
            "line": {"width": 1.5 if "open" in fill else 0, "color": colours},
        },
        customdata=[c.key for c in mine],
        hovertext=[describe_point(c) for c in mine],
        hoverinfo="text",
        # Without this, Streamlit makes unselected points faint. Only the highlighted case decides that.
        selected={"marker": {"opacity": 1.0}},
        unselected={"marker": {"opacity": 1.0}},
    )


def _moved_bytes(placed: Placed) -> int:
    return placed.cost.moved_bytes if placed.cost else 0


def _marker_px(placed: Placed, points: Sequence[Placed]) -> float:
    """The size of the marker: the more bytes its problem moves, the larger, between the extremes of all points."""
    low, high = (math.log(max(1, f(map(_moved_bytes, points)))) for f in (min, max))
    if high == low:
        return _MARKER_PX
    share = (math.log(max(1, _moved_bytes(placed))) - low) / (high - low)
    return round(_SMALLEST_PX + share * (_LARGEST_PX - _SMALLEST_PX), 1)


def _size_legend(points: Sequence[Placed]) -> list[go.Scatter]:
    """What the smallest and the largest marker stand for; nothing if all problems move the same number of bytes."""
    ends = [f(points, key=_moved_bytes) for f in (min, max)]
    if _moved_bytes(ends[0]) == _moved_bytes(ends[1]):
        return []
    return [
        go.Scatter(
            x=[None], y=[None], mode="markers", legend="legend3", hoverinfo="skip",
            marker={"size": _marker_px(end, points), "color": NEUTRAL, "symbol": "circle"},
            name=f"{label}: {units.size_bytes(_moved_bytes(end))} moved",
        )
        for end, label in zip(ends, ("smallest problem", "largest"), strict=True)
    ]  # fmt: skip


def _faint(colour: str) -> str:
    """The same colour, transparent.

    >>> _faint("#4C78A8")
    'rgba(76,120,168,0.22)'
    """
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},{_FAINT})"


def _stays(placed: Placed, group: str | None, case: str | None) -> bool:
    return placed.key == case if case is not None else group is None or placed.group == group


def format_trace(placed: Placed, cases: Sequence[Placed]) -> str:
    """The variant, with op, run or device if the cases have several."""
    label = format_variant(placed.variant)
    if len({c.problem.op for c in cases}) > 1:
        label = f"{placed.problem.op}: {label}"
    same_op = {c.run_id: c for c in cases if c.problem.op == placed.problem.op}
    if len(same_op) > 1:
        devices = {c.device for c in same_op.values()}
        label += f" · {placed.device if len(devices) == len(same_op) else placed.run_name}"
    return label


def describe_point(placed: Placed) -> str:
    """Hover text: case, time, rates, distance to the roof, limiter with its evidence, quality. Names are escaped."""
    limiter = placed.limiter
    lines = [
        f"<b>{escape(placed.problem.op)}: {escape(format_variant(placed.variant))}</b>",
        *folded(f"{format_sizes(placed.problem)} · {placed.problem.dtype} · {placed.device}"),
        escape(f"{format_time(placed.figure, placed.levels)} · {format_rates(placed)}"),
        *folded(describe_distance(placed)),
        *(line for ceiling in placed.ceilings for line in folded(describe_ceiling(ceiling))),
        *folded(": ".join((format_limiter(limiter.kind), *(str(describe_evidence(e)) for e in limiter.evidence[:1])))),
        escape("not timed" if placed.quality is None else str(format_level(placed.quality.level))),
    ]
    return "<br>".join(lines)


def _axes(figure: go.Figure, points: Sequence[Placed], x_range: list[float], lines: Sequence[Line]) -> None:
    rates = [c.rate_flop_per_s or 1.0 for c in points]
    ceilings = [line.value for line in lines if line.is_ceiling]
    slopes = [line.value * 10 ** x_range[1] for line in lines if not line.is_ceiling]
    y_range = frame_of([*rates, max(ceilings, default=max(slopes, default=max(rates)))], 2.5, 2)
    framed(figure, height=HEIGHT, x_title="arithmetic intensity, FLOP per byte", y_title="arithmetic rate, FLOP/s")
    ticks, names = decade_ticks(10 ** x_range[0], 10 ** x_range[1], 1.0)
    names = [n if float(n) < 1e3 else f"{float(n):,.0f}" for n in names]
    figure.update_xaxes(showgrid=True, type="log", range=x_range, tickvals=ticks, ticktext=names)
    ticks, names = rate_ticks(10 ** y_range[0], 10 ** y_range[1])
    figure.update_yaxes(type="log", range=y_range, tickvals=ticks, ticktext=names)


def rate_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks of a rate between two values, each with its SI prefix, so that nine decades stay readable.

    >>> rate_ticks(2e9, 3e12)
    ([10000000000.0, 100000000000.0, 1000000000000.0], ['10 G', '100 G', '1 T'])
    """
    values, _ = decade_ticks(low, high, 1.0)
    prefixes = [next((p for p in _SI if value >= p[0] * (1 - 1e-9)), _SI[-1]) for value in values]
    return values, [f"{v / scale:g} {prefix}".strip() for v, (scale, prefix) in zip(values, prefixes, strict=True)]


def frame_of(values: Sequence[float], below: float, above: float) -> list[float]:
    """Exponents of a logarithmic axis around the values, with factors of space below and above."""
    return [math.log10(min(values) / below), math.log10(max(values) * above)]
