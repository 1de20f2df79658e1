"""The roofline, zoomed to the chosen size, so that variants of one intensity stand apart.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model (CACM 52(4), 2009).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.core.problem import Problem
from kernelviz.core.run import Roof, Run
from kernelviz.metrics.roofline import arithmetic_intensity, compute_roof, memory_roof, speed_of_light
from kernelviz.metrics.summary import Row
from kernelviz.plots.frame import (
    Runs,
    decade_ticks,
    framed,
    hover,
    listed,
    neutral_line,
    nothing,
    problems_of,
    roofs_of,
    table_of,
    trace_name,
)
from kernelviz.plots.styles import NEUTRAL, style_of

HEIGHT = 350
_UNITS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))
_LINE_PX = 17
"""Height of a line of labels; labels nearer than this are moved apart."""
_PLOT_PX = 250
"""Height of the plot inside the frame, to turn pixels into decades."""


@dataclass(frozen=True, slots=True)
class _Spot:
    run: Run
    row: Row
    intensity: float
    rate: float
    chosen: bool


def rate_by_intensity(runs: Runs, problem: Problem | None = None, *, roofs: Sequence[Roof] | None = None) -> go.Figure:
    """Arithmetic rate by arithmetic intensity under the measured roofs, both logarithmic.

    `problem` (None: the last with results) is drawn in full and labelled with its share of the roof; other sizes are
    small and faint. The frame is zoomed to the chosen size, since far from the roof nothing could be told apart.
    """
    shown = listed(runs)
    known = problems_of(shown)
    chosen = problem or (known[-1] if known else None)
    spots = _spots(shown, chosen, roofs)
    if not spots:
        done = any(row.figure for run in shown for row in table_of(run, roofs))
        words = "This op does no arithmetic: see its bandwidth." if done else "No correct result to place yet."
        return nothing(words, height=HEIGHT)
    near = [s for s in spots if s.chosen] or spots
    figure = go.Figure()
    for run in shown:
        _add_roofs(figure, run, shown, near, roofs_of(run, roofs))
    for run in shown:
        for variant in dict.fromkeys(s.row.result.variant for s in spots if s.run is run):
            figure.add_trace(_trace(run, shown, [s for s in spots if s.run is run and s.row.result.variant == variant]))
    x_range, y_range = _zoom(near, [roofs_of(r, roofs) for r in shown])
    scale, unit = next((p for p in _UNITS if 10 ** y_range[1] >= p[0]), _UNITS[-1])
    framed(figure, height=HEIGHT, x_title="arithmetic intensity, FLOP per byte", y_title=f"rate, {unit}")
    for update, ends, of in ((figure.update_xaxes, x_range, 1.0), (figure.update_yaxes, y_range, scale)):
        ticks, names = decade_ticks(10 ** ends[0], 10 ** ends[1], of)
        update(type="log", range=ends, tickvals=ticks, ticktext=names)
    figure.update_layout(showlegend=True)
    if not any(roofs_of(run, roofs) for run in shown):
        figure.add_annotation(
            text="roofs not measured yet",
            x=0,
            y=1,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="top",
            showarrow=False,
        )
    _add_labels(figure, near, y_range)
    _add_distance(figure, near)
    return figure


def _spots(shown: Sequence[Run], chosen: Problem | None, roofs: Sequence[Roof] | None) -> list[_Spot]:
    found: list[_Spot] = []
    for run in shown:
        for row in table_of(run, roofs):
            intensity = arithmetic_intensity(row.result.cost) if row.result.cost else None
            if intensity and row.rate_flop_per_s:
                found.append(_Spot(run, row, intensity, row.rate_flop_per_s, row.result.problem == chosen))
    return found


def _trace(run: Run, shown: Sequence[Run], spots: Sequence[_Spot]) -> go.Scatter:
    style = style_of(spots[0].row.result.problem.op, spots[0].row.result.variant)
    return go.Scatter(
        x=[s.intensity for s in spots],
        y=[s.rate for s in spots],
        name=trace_name(run, spots[0].row.result.variant, shown),
        mode="markers",
        showlegend=False,
        marker={
            "color": style.colour,
            "symbol": style.marker,
            "size": [11 if s.chosen else 6 for s in spots],
            "opacity": [1.0 if s.chosen else 0.3 for s in spots],
        },
        customdata=[s.row.result.problem.key for s in spots],
        hovertext=[hover(s.run, s.row) for s in spots],
        hoverinfo="text",
    )


def _add_roofs(figure: go.Figure, run: Run, shown: Sequence[Run], near: Sequence[_Spot], roofs: Sequence[Roof]) -> None:
    """The memory slope up to the compute ceiling, as one line; its two names stand in the legend."""
    own = [s for s in near if s.run is run] or list(near)
    result = own[0].row.result
    memory = memory_roof(result.cost, roofs) if result.cost else None
    compute = compute_roof(result.problem, roofs)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return
    bandwidth = memory.bandwidth_bytes_per_s
    peak = compute.rate_flop_per_s if compute and compute.rate_flop_per_s else None
    ridge = peak / bandwidth if peak else None
    low, high = min(s.intensity for s in near) / 1e3, max(s.intensity for s in near) * 1e3
    xs = sorted({low, high, *([ridge] if ridge else [])})
    ys = [min(x * bandwidth, peak or math.inf) for x in xs]
    name = f"measured roofs: {memory.name.replace('_', ' ')} {units.rate(bandwidth, 'B/s', 3)}"
    ceiling = f", {result.problem.precision} matmul {units.rate(peak, 'FLOP/s', 3)}" if peak else ""
    which = f" · {escape(run.environment.device.name)}" if len(shown) > 1 else ""
    figure.add_trace(
        go.Scatter(
            x=xs, y=ys, mode="lines", name=name + ceiling + which, line=neutral_line("solid", 2), hoverinfo="skip"
        )
    )


def _zoom(near: Sequence[_Spot], roofs: Sequence[Sequence[Roof]]) -> tuple[list[float], list[float]]:
    """Exponents of the frame: the chosen points and the roof above them, with room for labels on the right."""
    rates = [s.rate for s in near]
    tops = [
        s.row.result.cost.work_flop / light.time_s
        for s in near
        for known in roofs
        if s.row.result.cost and (light := speed_of_light(s.row.result.problem, s.row.result.cost, known))
    ]
    low, high = min(rates + tops), max(rates + tops)
    x_low, x_high = min(s.intensity for s in near), max(s.intensity for s in near)
    x_range = [math.log10(x_low / 2.2), math.log10(x_high * 9)]
    return x_range, [math.log10(low / 1.5), math.log10(high * 1.45)]


def _add_labels(figure: go.Figure, near: Sequence[_Spot], y_range: Sequence[float]) -> None:
    """Each chosen point's name and share of the roof, right of it; labels that would touch are moved apart.

    They move downwards, away from the roof, which lies above every point.
    """
    gap = _LINE_PX / _PLOT_PX * (y_range[1] - y_range[0])
    x = math.log10(max(s.intensity for s in near))
    place = math.inf
    for spot in sorted(near, key=lambda s: -s.rate):
        place = min(math.log10(spot.rate), place - gap)
        share = "" if spot.row.efficiency is None else f" {units.percent(spot.row.efficiency, 0)}"
        figure.add_annotation(
            x=math.log10(spot.intensity),
            y=math.log10(spot.rate),
            ax=x + 0.12,
            ay=place,
            axref="x",
            ayref="y",
            xanchor="left",
            text=trace_name(spot.run, spot.row.result.variant, list({s.run.id: s.run for s in near}.values())) + share,
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=style_of(spot.row.result.problem.op, spot.row.result.variant).colour,
            standoff=6,
            font={"size": 12},
        )


def _add_distance(figure: go.Figure, near: Sequence[_Spot]) -> None:
    """A dotted line from the best point up to the roof: the part of the speed of light that is not used."""
    known = [s for s in near if s.row.efficiency]
    if not known:
        return
    best = max(known, key=lambda s: s.rate)
    top = best.rate / (best.row.efficiency or 1.0)
    figure.add_shape(
        type="line", x0=best.intensity, x1=best.intensity, y0=best.rate, y1=top,
        line={"color": NEUTRAL, "dash": "dot", "width": 1.5},
    )  # fmt: skip
