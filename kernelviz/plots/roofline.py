"""The roofline, zoomed to the chosen size, so that variants of one intensity stand apart.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model (CACM 52(4), 2009).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Problem, Roof, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.roofline import arithmetic_intensity, compute_roof, level_of, memory_roof
from kernelviz.metrics.rows import Row
from kernelviz.plots.frame import (
    Draft,
    Props,
    Runs,
    decade_ticks,
    format_run,
    format_share,
    hover,
    listed,
    neutral_line,
    nothing,
    problems_of,
    roofs_of,
    table_of,
    trace_name,
)
from kernelviz.plots.roofline_lines import under
from kernelviz.plots.variant_styles import NEUTRAL, style_of
from kernelviz.text.roofs import format_roof_name

HEIGHT = 350
_UNITS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))
_LINE_PX = 17
"""Height of a label; labels closer than this are moved apart."""
_PLOT_PX = 250
"""Height of the plot inside the frame, to turn pixels into decades."""


_ASIDE = 0.05
"""Other sizes are drawn if their intensity differs by more than this fraction from that of the chosen size."""


@dataclass(frozen=True, slots=True)
class _Spot:
    """A result with its coordinates. `roof` is the rate that the measured roofs allow at its intensity."""

    run: Run
    row: Row
    intensity: float
    rate: float
    roof: float | None
    chosen: bool


def rate_by_intensity(
    runs: Runs,
    problem: Problem | None = None,
    *,
    roofs: Sequence[Roof] | None = None,
    headline: Headline = "cold",
) -> go.Figure:
    """Arithmetic rate by arithmetic intensity under the measured roofs, both logarithmic.

    `problem` (None: the last with results) is drawn in full and labelled with its share of the roof; other sizes are
    small and faint. The frame is zoomed to the chosen size, so that its variants do not overlap.
    """
    run_list = listed(runs)
    known = problems_of(run_list)
    chosen = problem or (known[-1] if known else None)
    spots = _spots(run_list, chosen, roofs, headline)
    if not spots:
        done = any(row.figure for run in run_list for row in table_of(run, roofs, headline))
        sentence = (
            "This op does no arithmetic, so it has no roofline: see its bandwidth."
            if done
            else "No case has a correct result yet."
        )
        return nothing(sentence, height=HEIGHT)
    chosen_spots = [s for s in spots if s.chosen] or spots
    x_range, y_range = _zoom(chosen_spots)
    positions, y_range = _placed(chosen_spots, y_range)
    scale, unit = next((p for p in _UNITS if 10 ** y_range[1] >= p[0]), _UNITS[-1])
    draft = Draft(HEIGHT, x_title="arithmetic intensity, FLOP per byte", y_title=f"rate, {unit}")
    for run in run_list:
        _add_roofs(draft, run, run_list, chosen_spots, roofs_of(run, roofs), headline)
    for run in run_list:
        for variant in dict.fromkeys(s.row.result.variant for s in spots if s.run is run):
            mine = [s for s in spots if s.run is run and s.row.result.variant == variant]
            draft.traces.append(_trace(run, run_list, mine, headline))
    for axis, ends, of in ((draft.x_axis, x_range, 1.0), (draft.y_axis, y_range, scale)):
        ticks, names = decade_ticks(10 ** ends[0], 10 ** ends[1], of)
        axis |= {"type": "log", "range": ends, "tickvals": ticks, "ticktext": names}
    draft.layout["showlegend"] = True
    if not any(roofs_of(run, roofs) for run in run_list):
        draft.note(
            "roofs not measured: press Calibrate", x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="top"
        )
    _add_labels(draft, chosen_spots, positions)
    _add_distance(draft, chosen_spots)
    return draft.figure()


def _spots(
    run_list: Sequence[Run], chosen: Problem | None, roofs: Sequence[Roof] | None, headline: Headline
) -> list[_Spot]:
    spots: list[_Spot] = []
    for run in run_list:
        for row in table_of(run, roofs, headline):
            intensity = arithmetic_intensity(row.result.cost) if row.result.cost else None
            if intensity and row.rate_flop_per_s:
                roof = row.rate_flop_per_s / row.efficiency if row.efficiency else None
                spots.append(_Spot(run, row, intensity, row.rate_flop_per_s, roof, row.result.problem == chosen))
    # Other sizes show how the intensity changes; with the same intensity they would only cover the chosen size.
    here = [s.intensity for s in spots if s.chosen]
    return [s for s in spots if s.chosen or not here or abs(s.intensity / here[0] - 1) > _ASIDE]


def _trace(run: Run, run_list: Sequence[Run], spots: Sequence[_Spot], headline: Headline) -> Props:
    style = style_of(spots[0].row.result.problem.op, spots[0].row.result.variant)
    return {
        "type": "scatter",
        "x": [s.intensity for s in spots],
        "y": [s.rate for s in spots],
        "name": trace_name(run, spots[0].row.result.variant, run_list),
        "mode": "markers",
        "showlegend": False,
        "marker": {
            "color": style.colour,
            "symbol": style.marker,
            "size": [11 if s.chosen else 6 for s in spots],
            "opacity": [1.0 if s.chosen else 0.3 for s in spots],
        },
        "customdata": [s.row.result.problem.key for s in spots],
        "hovertext": [hover(s.run, s.row, headline) for s in spots],
        "hoverinfo": "text",
    }


def _add_roofs(
    draft: Draft,
    run: Run,
    run_list: Sequence[Run],
    chosen_spots: Sequence[_Spot],
    roofs: Sequence[Roof],
    headline: Headline,
) -> None:
    """The memory roof up to the compute roof as one line; both names are in the legend."""
    own = [s for s in chosen_spots if s.run is run] or list(chosen_spots)
    result = own[0].row.result
    memory = memory_roof(result.cost, roofs, level_of(result.cost, roofs, headline)) if result.cost else None
    compute = compute_roof(result.problem, roofs, result.cost)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return
    bandwidth = memory.bandwidth_bytes_per_s
    peak = compute.rate_flop_per_s if compute and compute.rate_flop_per_s else None
    xs, ys = under(
        min(s.intensity for s in chosen_spots) / 1e3, max(s.intensity for s in chosen_spots) * 1e3, bandwidth, peak
    )
    name = f"measured roofs: {escape(format_roof_name(memory))}, {units.rate(bandwidth, 'B/s', 3)}"
    # A line of text for each: on a phone one line with both would be cut off.
    ceiling = (
        f"<br>and {escape(format_roof_name(compute))}, {units.rate(peak, 'FLOP/s', 3)}" if compute and peak else ""
    )
    which = f" · {escape(format_run(run, run_list))}" if len(run_list) > 1 else ""
    line = neutral_line("solid", 2)
    named = name + ceiling + which
    draft.traces.append(
        {"type": "scatter", "x": xs, "y": ys, "mode": "lines", "name": named, "line": line, "hoverinfo": "skip"}
    )


def _zoom(chosen_spots: Sequence[_Spot]) -> tuple[list[float], list[float]]:
    """Exponents of the frame: the chosen points and the roof above them, with space for labels on the right."""
    rates = [s.rate for s in chosen_spots] + [s.roof for s in chosen_spots if s.roof]
    x_low, x_high = min(s.intensity for s in chosen_spots), max(s.intensity for s in chosen_spots)
    x_range = [math.log10(x_low / 2.2), math.log10(x_high * 9)]
    return x_range, [math.log10(min(rates) / 1.5), math.log10(max(rates) * 1.45)]


def _placed(chosen_spots: Sequence[_Spot], y_range: Sequence[float]) -> tuple[list[tuple[_Spot, float]], list[float]]:
    """The height of each label, and the frame, extended downwards if the labels need it.

    Labels that would touch are moved down, because the roof is above every point.
    """
    low, high = y_range
    while True:
        gap = _LINE_PX / _PLOT_PX * (high - low)
        positions: list[tuple[_Spot, float]] = []
        position = math.inf
        for spot in sorted(chosen_spots, key=lambda s: -s.rate):
            below_roof = math.log10(spot.roof) - 0.8 * gap if spot.roof else math.inf
            position = min(math.log10(spot.rate), below_roof, position - gap)
            positions.append((spot, position))
        # If there are more labels than lines in the frame, they may leave the frame.
        if position - 0.7 * gap >= low or len(chosen_spots) > _PLOT_PX / _LINE_PX - 3:
            return positions, [low, high]
        low = position - gap


def _add_labels(draft: Draft, chosen_spots: Sequence[_Spot], positions: Sequence[tuple[_Spot, float]]) -> None:
    """The name and the share of the roof of each chosen point, to its right."""
    x = math.log10(max(s.intensity for s in chosen_spots))
    runs = list({s.run.id: s.run for s in chosen_spots}.values())
    for spot, position in positions:
        share = "" if spot.row.efficiency is None else f" {escape(format_share(spot.row.efficiency))}"
        draft.note(
            trace_name(spot.run, spot.row.result.variant, runs) + share,
            x=math.log10(spot.intensity),
            y=math.log10(spot.rate),
            ax=x + 0.12,
            ay=position,
            axref="x",
            ayref="y",
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=style_of(spot.row.result.problem.op, spot.row.result.variant).colour,
            standoff=6,
            font={"size": 12},
        )


def _add_distance(draft: Draft, chosen_spots: Sequence[_Spot]) -> None:
    """A dotted line from the best point up to the roof: the unused part of the speed of light."""
    best = max(chosen_spots, key=lambda s: s.rate)
    if best.roof is None:
        return
    dots = {"color": NEUTRAL, "dash": "dot", "width": 1.5}
    draft.line(x0=best.intensity, x1=best.intensity, y0=best.rate, y1=best.roof, line=dots)
