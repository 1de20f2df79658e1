"""The roofline at one size: its variants, the measured roofs with their ridge, and the roofs of the data sheet.

Williams, Waterman, Patterson: Roofline, an insightful visual performance model (CACM 52(4), 2009).
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Problem, Roof, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.roofline import (
    arithmetic_intensity,
    compute_roof,
    contracts,
    level_of,
    memory_roof,
    rate_flop_per_s,
)
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
    style_in,
    table_of,
    trace_name,
)
from kernelviz.plots.variant_styles import NEUTRAL, Style
from kernelviz.text import format_roof_name, format_share
from kernelviz.text.charts import describe_no_time

HEIGHT = 330
_UNITS = ((1e12, "TFLOP/s"), (1e9, "GFLOP/s"), (1e6, "MFLOP/s"))
_LINE_PX = 16
"""Height of a label; labels closer than this are moved apart."""
_PLOT_PX = 230
"""Height of the plot inside the frame, to turn pixels into decades."""
_MOST_LABELS = 6
"""Points with a label: the fastest variants. More would leave the frame; the others are named on hover."""
_LABELS_SHARE = 0.42
"""Share of the plot's width to the right of the points that their labels need."""

_ASIDE = 0.05
"""Other sizes are drawn if their intensity differs by more than this fraction from that of the chosen size."""


@dataclass(frozen=True, slots=True)
class _Roofs:
    """The roofs that apply to a problem, measured or from a data sheet. None: unknown."""

    bandwidth_bytes_per_s: float
    peak_flop_per_s: float | None
    name: str

    @property
    def ridge(self) -> float | None:
        """The intensity from which on the peak is the limit."""
        return self.peak_flop_per_s / self.bandwidth_bytes_per_s if self.peak_flop_per_s else None


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
    sheets: Mapping[str, Sequence[Roof]] | None = None,
    beside: Sequence[str] = (),
) -> go.Figure:
    """Arithmetic rate by arithmetic intensity under the measured roofs, both logarithmic.

    The points of `problem` (None: the last with results) are large and labelled with their share of the measured roof. The
    points of other sizes are small and faint. The frame holds the chosen points and the ridge. `sheets`: the data-sheet roofs
    by name of the device, which are drawn dashed.
    """
    run_list = listed(runs)
    chosen = problem or next(reversed(problems_of(run_list)), None)
    spots = _spots(run_list, chosen, roofs, headline)
    if not spots:
        done = any(row.figure for run in run_list for row in table_of(run, roofs, headline))
        sentence = (
            "This op does no arithmetic, so it has no roofline: see its bandwidth."
            if done
            else str(describe_no_time(run_list, headline))
        )
        return nothing(sentence, height=HEIGHT)
    chosen_spots = [s for s in spots if s.chosen] or spots
    measured = {r.id: _measured_roofs(r, chosen_spots, roofs_of(r, roofs), headline) for r in run_list}
    promised = {r.id: _sheet_roofs(r, chosen_spots, sheets or {}, headline) for r in run_list}
    all_roofs = [m for m in (*measured.values(), *promised.values()) if m is not None]
    labelled = sorted(chosen_spots, key=lambda s: -s.rate)[:_MOST_LABELS]
    peaks = [m.peak_flop_per_s for m in all_roofs if m.peak_flop_per_s]
    positions, (low, high) = _placed(chosen_spots, labelled, peaks)
    scale, unit = next((p for p in _UNITS if high >= p[0]), _UNITS[-1])
    draft = Draft(HEIGHT, x_title="arithmetic intensity, FLOP per byte", y_title=f"rate, {unit}")
    left, right = _span([s.intensity for s in chosen_spots], [m.ridge for m in all_roofs if m.ridge])
    for run in run_list:
        draft.traces += _roof_lines(measured[run.id], promised[run.id], (left, right), run_suffix(run, run_list))

    def style(spot: _Spot) -> Style:
        return style_in(run_list, spot.row.result.problem.op, spot.row.result.variant, beside)

    traces = grouped(spots, key=lambda s: (s.run.id, s.row.result.variant))
    draft.traces += [_trace(mine, run_list, headline, style(mine[0])) for mine in traces.values()]
    draft.x_axis |= log_axis(left, right)
    draft.y_axis |= log_axis(low, high, scale)
    draft.layout["showlegend"] = True
    draft.layout["meta"] = {"y": {"scale": scale}}
    if not any(roofs_of(run, roofs) for run in run_list):
        draft.note(
            "roofs not measured",
            x=0,
            y=1,
            xref="paper",
            yref="paper",
            xanchor="left",
            yanchor="top",
            xshift=6,
        )
    _add_labels(draft, [(spot, y, style(spot).colour) for spot, y in positions])
    ridge = next((m.ridge for m in measured.values() if m is not None), None)
    if ridge is not None:
        _add_ridge(draft, ridge, max(peaks))
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
            rate = (
                rate_flop_per_s(row.result.cost, row.time_s) if intensity and row.result.cost and row.figure else None
            )
            if intensity and rate:
                roof = rate / row.efficiency if row.efficiency else None
                spots.append(_Spot(run, row, intensity, rate, roof, row.result.problem == chosen))
    # Other sizes show how the intensity changes; with the same intensity they would only cover the chosen size.
    here = [s.intensity for s in spots if s.chosen]
    return [s for s in spots if s.chosen or not here or abs(s.intensity / here[0] - 1) > _ASIDE]


def _trace(spots: Sequence[_Spot], run_list: Sequence[Run], headline: Headline, style: Style) -> Props:
    result = spots[0].row.result
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


def _measured_roofs(
    run: Run, chosen_spots: Sequence[_Spot], roofs: Sequence[Roof], headline: Headline
) -> _Roofs | None:
    """The measured roofs of the chosen problem; None without a measured bandwidth."""
    result = next((s for s in chosen_spots if s.run is run), chosen_spots[0]).row.result
    memory = memory_roof(result.cost, roofs, level_of(result.cost, roofs, headline)) if result.cost else None
    compute = compute_roof(result.problem, roofs, result.cost)
    if memory is None or not memory.bandwidth_bytes_per_s:
        return None
    bandwidth, peak = memory.bandwidth_bytes_per_s, (compute.rate_flop_per_s if compute else None) or None
    name = f"measured roofs: {escape(format_roof_name(memory))}, {units.rate(bandwidth, 'B/s', 3)}"
    # One line of text for each, because one line with both would be cut off on a phone.
    if compute and peak:
        name += f"<br>and {escape(format_roof_name(compute))}, {units.rate(peak, 'FLOP/s', 3)}"
    return _Roofs(bandwidth, peak, name)


def _sheet_roofs(
    run: Run, chosen_spots: Sequence[_Spot], sheets: Mapping[str, Sequence[Roof]], headline: Headline
) -> _Roofs | None:
    """The data-sheet roofs of the chosen problem; None without a sheet, and for warm times, because sheets do not state the
    bandwidth of the L2.

    A sheet states the peak of the tensor cores, and in fp32 that of the vector units. An op that is not a matrix product runs
    on the vector units, so in other precisions it has no peak here."""
    result = next((s for s in chosen_spots if s.run is run), chosen_spots[0]).row.result
    entries = sheets.get(run.environment.device.name, ()) if headline == "cold" else ()
    bandwidth = next((r.bandwidth_bytes_per_s for r in entries if r.bandwidth_bytes_per_s), None)
    if not bandwidth:
        return None
    precision = result.problem.precision
    applies = precision == "fp32" or contracts(result.problem, result.cost)
    peak = next(
        (r.rate_flop_per_s for r in entries if applies and r.precision == precision and r.rate_flop_per_s), None
    )
    name = f"data sheet: {units.rate(bandwidth, 'B/s', 3)}"
    return _Roofs(bandwidth, peak, name + (f",<br>{units.rate(peak, 'FLOP/s', 3)}" if peak else ""))


def _roof_lines(
    measured: _Roofs | None, promised: _Roofs | None, frame: tuple[float, float], suffix: str
) -> Iterator[Props]:
    """The measured roofs as a solid line, and those of the data sheet as a dashed one. Without a peak of its own, the slope of
    the data sheet ends at the measured ridge, because it says nothing about the rates above."""
    for roofs, dash, width in ((promised, "dash", 1.5), (measured, "solid", 2.0)):
        if roofs is None:
            continue
        low, high = frame[0] / 1e3, frame[1] * 1e3
        if roofs is promised and not roofs.peak_flop_per_s and measured is not None and measured.ridge:
            high = measured.ridge * measured.bandwidth_bytes_per_s / roofs.bandwidth_bytes_per_s
        xs, ys = under(low, high, roofs.bandwidth_bytes_per_s, roofs.peak_flop_per_s)
        line = {"line": neutral_line(dash, width), "hoverinfo": "skip"}
        yield {"type": "scatter", "x": xs, "y": ys, "mode": "lines", "name": roofs.name + suffix, **line}


def _span(intensities: Sequence[float], ridges: Sequence[float]) -> tuple[float, float]:
    """The range of intensities: the points, the ridge, and space for labels to the right of the points.

    >>> [round(end, 2) for end in _span([1.0], [30.0])], [round(end, 2) for end in _span([1.0], [])]
    ([0.33, 75.0], [0.33, 2.22])
    """
    left = min((*intensities, *ridges)) / 3
    last = max(intensities)
    labels = last * (last / left) ** (_LABELS_SHARE / (1 - _LABELS_SHARE))
    return left, max((labels, *(ridge * 2.5 for ridge in ridges)))


def _placed(
    chosen_spots: Sequence[_Spot], labelled: Sequence[_Spot], peaks: Sequence[float]
) -> tuple[list[tuple[_Spot, float]], tuple[float, float]]:
    """The height of each label as an exponent, and the range of rates: the chosen points, the roof above them and the peaks.

    Labels that would touch are moved down, because the roof is above every point; the range is extended downwards if the
    labels need it.
    """
    rates = [s.rate for s in chosen_spots] + [s.roof for s in chosen_spots if s.roof] + list(peaks)
    low, high = math.log10(min(rates) / 1.5), math.log10(max(rates) * 1.8)
    while True:
        gap = _LINE_PX / _PLOT_PX * (high - low)
        positions: list[tuple[_Spot, float]] = []
        position = math.inf
        for spot in labelled:
            below_roof = math.log10(spot.roof) - 0.8 * gap if spot.roof else math.inf
            position = min(math.log10(spot.rate), below_roof, position - gap)
            positions.append((spot, position))
        if position - 0.7 * gap >= low:
            return positions, (10**low, 10**high)
        low = position - gap


def _add_ridge(draft: Draft, ridge: float, peak_flop_per_s: float) -> None:
    """The intensity of the ridge, above the highest peak, on the side that has more space."""
    left, right = draft.x_axis["range"]
    in_right_half = math.log10(ridge) > (left + right) / 2
    draft.note(
        f"ridge {units.significant(ridge, 3)} FLOP per byte",
        x=math.log10(ridge),
        y=math.log10(peak_flop_per_s),
        xanchor="right" if in_right_half else "left",
        yanchor="bottom",
        font={"size": 11},
    )


def _add_labels(draft: Draft, positions: Sequence[tuple[_Spot, float, str]]) -> None:
    """The share of the roof and the name of each labelled point, to its right, where a phone may cut the end of a long name.
    `positions`: each with height and colour."""
    x = math.log10(max(spot.intensity for spot, *_ in positions))
    left, right = draft.x_axis["range"]
    runs = list({spot.run.id: spot.run for spot, *_ in positions}.values())
    for spot, position, colour in positions:
        share = "" if spot.row.efficiency is None else f"{escape(format_share(spot.row.efficiency))} "
        draft.note(
            share + trace_name(spot.run, spot.row.result.variant, runs),
            x=math.log10(spot.intensity),
            y=math.log10(spot.rate),
            ax=x + 0.06 * (right - left),
            ay=position,
            axref="x",
            ayref="y",
            xanchor="left",
            showarrow=True,
            arrowhead=0,
            arrowwidth=1,
            arrowcolor=colour,
            standoff=6,
            font={"size": 12},
        )
