"""The roofline, zoomed to the chosen size, so that variants with the same intensity do not overlap.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model (CACM 52(4), 2009).
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Problem, Roof, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.roofline import arithmetic_intensity, compute_roof, level_of, memory_roof
from kernelviz.metrics.rows import Row
from kernelviz.plots.frame import (
    Draft,
    Props,
    Runs,
    hover,
    listed,
    log_axis,
    neutral_line,
    nothing,
    problems_of,
    roofs_of,
    run_suffix,
    table_of,
    trace_name,
)
from kernelviz.plots.variant_styles import NEUTRAL, style_of
from kernelviz.text import format_roof_name, format_share

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

    The points of `problem` (None: the last with results) are large and labelled with their share of the roof. The points of
    other sizes are small and faint. The frame is zoomed to the chosen size, so that its variants do not overlap.
    """
    run_list = listed(runs)
    chosen = problem or next(reversed(problems_of(run_list)), None)
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
    positions, (low, high) = _placed(chosen_spots)
    scale, unit = next((p for p in _UNITS if high >= p[0]), _UNITS[-1])
    draft = Draft(HEIGHT, x_title="arithmetic intensity, FLOP per byte", y_title=f"rate, {unit}")
    draft.traces = [r for run in run_list for r in _roofs(run, run_list, chosen_spots, roofs_of(run, roofs), headline)]
    traces = grouped(spots, key=lambda s: (s.run.id, s.row.result.variant))
    draft.traces += [_trace(mine, run_list, headline) for mine in traces.values()]
    intensities = [s.intensity for s in chosen_spots]
    draft.x_axis |= log_axis(min(intensities) / 2.2, max(intensities) * 9)  # space for labels on the right
    draft.y_axis |= log_axis(low, high, scale)
    draft.layout["showlegend"] = True
    if not any(roofs_of(run, roofs) for run in run_list):
        draft.note(
            "roofs not measured: press Calibrate", x=0, y=1, xref="paper", yref="paper", xanchor="left", yanchor="top"
        )
    _add_labels(draft, chosen_spots, positions)
    best = max(chosen_spots, key=lambda s: s.rate)
    if best.roof is not None:  # a line from the best point up to the roof shows the unused part of the roof
        dots = {"color": NEUTRAL, "dash": "dot", "width": 1.5}
        draft.line(x0=best.intensity, x1=best.intensity, y0=best.rate, y1=best.roof, line=dots)
    return draft.figure()


def under(
    low: float, high: float, bandwidth_bytes_per_s: float, peak_flop_per_s: float | None
) -> tuple[list[float], list[float]]:
    """The corners of min(intensity × bandwidth, peak) between two intensities; without a level part if the peak is unknown.

    >>> under(0.1, 100.0, 4.0, 8.0)
    ([0.1, 2.0, 100.0], [0.4, 8.0, 8.0])
    """
    ridge = peak_flop_per_s / bandwidth_bytes_per_s if peak_flop_per_s else None
    xs = sorted({low, high, *([ridge] if ridge and low < ridge < high else [])})
    return xs, [min(x * bandwidth_bytes_per_s, peak_flop_per_s or math.inf) for x in xs]


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


def _trace(spots: Sequence[_Spot], run_list: Sequence[Run], headline: Headline) -> Props:
    result = spots[0].row.result
    style = style_of(result.problem.op, result.variant)
    return {
        "type": "scatter",
        "x": [s.intensity for s in spots],
        "y": [s.rate for s in spots],
        "name": trace_name(spots[0].run, result.variant, run_list),
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


def _roofs(
    run: Run, run_list: Sequence[Run], chosen_spots: Sequence[_Spot], roofs: Sequence[Roof], headline: Headline
) -> Iterator[Props]:
    """The memory roof up to the compute roof as one line; both names are in the legend."""
    result = next((s for s in chosen_spots if s.run is run), chosen_spots[0]).row.result
    memory = memory_roof(result.cost, roofs, level_of(result.cost, roofs, headline)) if result.cost else None
    compute = compute_roof(result.problem, roofs, result.cost)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return
    bandwidth, peak = memory.bandwidth_bytes_per_s, compute.rate_flop_per_s if compute else None
    intensities = [s.intensity for s in chosen_spots]
    xs, ys = under(min(intensities) / 1e3, max(intensities) * 1e3, bandwidth, peak or None)
    name = f"measured roofs: {escape(format_roof_name(memory))}, {units.rate(bandwidth, 'B/s', 3)}"
    # One line of text for each, because one line with both would be cut off on a phone.
    ceiling = (
        f"<br>and {escape(format_roof_name(compute))}, {units.rate(peak, 'FLOP/s', 3)}" if compute and peak else ""
    )
    yield {
        "type": "scatter",
        "x": xs,
        "y": ys,
        "mode": "lines",
        "name": name + ceiling + run_suffix(run, run_list),
        "line": neutral_line("solid", 2),
        "hoverinfo": "skip",
    }


def _placed(chosen_spots: Sequence[_Spot]) -> tuple[list[tuple[_Spot, float]], tuple[float, float]]:
    """The height of each label as an exponent, and the range of rates: the chosen points and the roof above them.

    Labels that would touch are moved down, because the roof is above every point; the range is extended downwards if the
    labels need it.
    """
    rates = [s.rate for s in chosen_spots] + [s.roof for s in chosen_spots if s.roof]
    low, high = math.log10(min(rates) / 1.5), math.log10(max(rates) * 1.45)
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
            return positions, (10**low, 10**high)
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
