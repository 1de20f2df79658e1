"""The samples of a time: their distribution, and their order with the clock of each block."""

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from kernelviz.core import Figure, units
from kernelviz.metrics.samples import BY_MEDIAN, Series, in_order
from kernelviz.metrics.statistics import Floats
from kernelviz.plots.frame import GRID, Draft, Props, decade_ticks, nothing, scatter_type
from kernelviz.plots.variant_styles import BAD, NEUTRAL, Style, style_of, styles_of
from kernelviz.text import format_time, format_variant

HEIGHT = 380
QUANTILES = (0.5, 0.9, 0.99)
"""The quantiles at which a distribution has a marker with hover text."""
SHARE_AXIS: Props = {"range": [-2, 103], "tickvals": [0, 25, 50, 75, 90, 99]}
_WIDE = 2.5
"""If max / min of the times is larger, the axis is logarithmic."""
_MOST_PAUSES, _MOST_MARKED = 12, 40
"""The maximum number of pauses that are drawn, and of block means with a marker. More would cover the samples."""


def share_by_time(figures: Mapping[str, Figure], op: str, *, beside: Sequence[str] = ()) -> go.Figure:
    """The cumulative distribution of the samples of each variant.

    Every sample is a vertex, or every block where only the mean of each block is kept. Markers are at the 50th, 90th and 99th
    percentile, on the line.
    """
    samples = {v: np.sort(np.asarray(f.samples, dtype=np.float64)) for v, f in figures.items() if f.samples}
    if not samples:
        return nothing("No samples are stored for this timing.", height=HEIGHT)
    low, high = min(float(s[0]) for s in samples.values()), max(float(s[-1]) for s in samples.values())
    scale, unit = units.time_unit(float(np.median([np.median(s) for s in samples.values()])))
    of = vertices_of(figures.values())
    draft = Draft(HEIGHT, x_title=f"{of} time, {unit}", y_title=f"share of {of}s up to this time, %")
    styles = styles_of(op, figures, beside)
    for variant, ordered in samples.items():
        style = styles[variant]
        draft.traces += distribution(
            ordered, scale, of=of, name=format_variant(variant), group=variant, colour=style.colour, symbol=style.marker
        )
    draft.y_axis |= SHARE_AXIS
    wide = _logarithmic(low, high, scale)
    if wide:
        draft.x_axis |= wide | {"range": [math.log10(low * 0.97 / scale), math.log10(high * 1.03 / scale)]}
    return draft.figure()


def vertices_of(figures: Iterable[Figure]) -> str:
    """What a vertex of the distributions is: a sample, or a block where only the mean of each block is kept."""
    return "block" if any(figure.by_block for figure in figures) else "sample"


def _logarithmic(low: float, high: float, scale: float) -> Props:
    """A logarithmic axis for a wide range of times; empty if the range is narrow or would have too few ticks."""
    ticks, labels = decade_ticks(low * 0.97, high * 1.03, scale) if low > 0 and high / low > _WIDE else ([], [])
    return {"type": "log", "tickvals": [t / scale for t in ticks], "ticktext": labels} if len(ticks) > 2 else {}


def distribution(
    ordered: Floats, scale: float, *, of: str, name: str, group: str, colour: str, symbol: str, **line: str
) -> list[Props]:
    """The cumulative distribution of sorted samples: a line through each sample, and markers at QUANTILES. Between two samples
    the line is straight, as the percentiles in tables are.

    `of`: what a vertex is, see `vertices_of`. `line` are further properties of the line, for example its dash.
    """
    count, at = len(ordered), np.quantile(ordered, QUANTILES)
    curve = {
        "type": scatter_type(count),
        # A single sample is a vertical line.
        "x": (ordered if count > 1 else np.repeat(ordered, 2)) / scale,
        "y": np.linspace(0, 100, max(count, 2)),
        "mode": "lines",
        "line": {"color": colour, "width": 2, **line},
        "hoverinfo": "skip",
        "showlegend": False,
        "legendgroup": group,
    }
    markers = {
        "type": "scatter",
        "x": at / scale,
        "y": [q * 100 for q in QUANTILES],
        "mode": "markers",
        "marker": {"symbol": symbol, "size": 9, "color": colour},
        "name": escape(name),
        "legendgroup": group,
        "hovertext": [
            f"<b>{escape(name)}</b><br>{q * 100:g} % of {count:,} {of}s take at most {units.seconds(float(t))}"
            for q, t in zip(QUANTILES, at, strict=True)
        ],
        "hoverinfo": "text",
    }
    return [curve, markers]


def samples_by_order(figure: Figure, field: str, *, op: str, variant: str, beside: Sequence[str] = ()) -> go.Figure:
    """The samples of one variant in the order of their blocks, with block means, the estimate and its interval.

    A panel below shows the SM clock of each block if it is known. Blocks are equally spaced, because pauses between them are much
    longer than the blocks; the ticks are their start times. Blocks of a repeated round, blocks whose clock was more than 1 %
    below that of the first block, and pauses are marked.
    """
    series = in_order(figure, field)
    if series is None:
        missing = "blocks of the samples" if figure.samples else "samples"
        return nothing(f"The order cannot be drawn, because the {missing} are not stored.", height=HEIGHT)
    scale, unit = units.time_unit(float(np.median(series.middles_s)))
    clocked = not np.isnan(series.clocks_hz).all()
    draft = Draft(HEIGHT + (90 if clocked else 0), y_title=f"time, {unit}")
    draft.traces = [
        _samples(
            series, scale, style_of(op, variant, beside), f"{vertices_of([figure])}s of {format_variant(variant)}"
        ),
        _means(series, scale, "median" if field in BY_MEDIAN and not figure.by_block else "mean"),
        *_marks(series, scale),
    ]
    _add_estimate(draft, figure, scale)
    draft.y_axis |= _logarithmic(float(series.samples_s.min()), float(series.samples_s.max()), scale)
    if clocked:
        _add_clock(draft, series)
    _add_pauses(draft, series)
    _add_seconds(draft, series, "y2" if clocked else "y")
    return draft.figure()


def _samples(series: Series, scale: float, style: Style, name: str) -> Props:
    """Every sample, in order within its block, because the time of a single sample is not stored."""
    return {
        "type": scatter_type(len(series.samples_s)),
        "x": series.block_of + _inside(series),
        "y": series.samples_s / scale,
        "mode": "markers",
        "marker": {
            "color": style.colour,
            "size": 8 if _alone(series) else 5,
            "opacity": 1 if _alone(series) else 0.6,
            "symbol": style.marker,
        },
        "name": escape(name),
        "hoverinfo": "skip",
    }


def _alone(series: Series) -> bool:
    """Whether each block has one sample, which a marker of the block would hide."""
    return len(series.samples_s) == len(series.middles_s)


def _inside(series: Series) -> Floats:
    """The position of each sample in its block, from -0.35 to 0.35."""
    sizes = np.bincount(series.block_of)
    first = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    number = np.arange(len(series.block_of)) - first[series.block_of]
    return np.asarray(((number + 0.5) / sizes[series.block_of] - 0.5) * 0.7, dtype=np.float64)


def _means(series: Series, scale: float, of: str) -> Props:
    name = f"block {of}"
    blocks = len(series.middles_s)
    return {
        "type": scatter_type(blocks),
        "x": np.arange(blocks),
        "y": series.middles_s / scale,
        "mode": "lines+markers" if blocks <= _MOST_MARKED and not _alone(series) else "lines",
        "line": {"color": NEUTRAL, "width": 1.5},
        "marker": {"color": NEUTRAL, "size": 6, "symbol": "line-ew-open", "line": {"width": 2.5}},
        "name": name,
        "hovertext": [_block_hover(series, i, name) for i in range(blocks)],
        "hoverinfo": "text",
    }


def _block_hover(series: Series, i: int, name: str) -> str:
    lines = [
        f"<b>block {i + 1} of {len(series.middles_s)}</b>, started at {series.started_s[i]:.3f} s",
        f"{name} {units.seconds(float(series.middles_s[i]))}",
    ]
    if not math.isnan(series.clocks_hz[i]):
        lines.append(f"SM clock {units.clock(float(series.clocks_hz[i]))}")
    lines += [label for flags, label in ((series.again, _AGAIN), (series.slow, _SLOW)) if flags[i]]
    return "<br>".join(lines)


_AGAIN, _SLOW = "in a repeated round", "SM clock more than 1 % below the first block"


def _marks(series: Series, scale: float) -> list[Props]:
    kinds = ((series.again, "circle-open", _AGAIN, NEUTRAL), (series.slow, "x-thin-open", _SLOW, BAD))
    return [
        {
            "type": "scatter",
            "x": np.flatnonzero(flags),
            "y": series.middles_s[flags] / scale,
            "mode": "markers",
            "marker": {"symbol": symbol, "size": 11, "color": colour, "line": {"width": 2}},
            "name": name,
            "hoverinfo": "skip",
        }
        for flags, symbol, name, colour in kinds
        if flags.any()
    ]


def _add_estimate(draft: Draft, figure: Figure, scale: float) -> None:
    """Add a line at the estimate and a band over its interval, across the whole width."""
    across = {"xref": "x domain", "x0": 0, "x1": 1}
    if figure.low is not None and figure.high is not None:
        ends = {"y0": figure.low / scale, "y1": figure.high / scale}
        look = {"fillcolor": NEUTRAL, "opacity": 0.3, "line": {"width": 0}, "layer": "below"}
        draft.line(**across, **ends, **look, type="rect")
    middle = figure.estimate / scale
    draft.line(**across, y0=middle, y1=middle, line={"color": NEUTRAL, "width": 1, "dash": "dash"})
    label = f"estimate {format_time(figure)}" + ("" if figure.half_width is None else ", 95 % interval (band)")
    draft.note(label, x=0, xref="paper", xanchor="left", y=1, yref="paper", yanchor="bottom", font={"size": 12})


def _add_clock(draft: Draft, series: Series) -> None:
    """Add the SM clock of each block in a panel below the times."""
    draft.traces.append(
        {
            "type": "scatter",
            "x": np.arange(len(series.clocks_hz)),
            "y": [None if math.isnan(c) else float(c) / 1e6 for c in series.clocks_hz],
            "mode": "lines+markers",
            "line": {"color": NEUTRAL, "width": 1},
            "marker": {"color": NEUTRAL, "size": 5, "symbol": "diamond"},
            "name": "SM clock",
            "yaxis": "y2",
            "hovertext": [f"block {i + 1}: SM clock {units.clock(float(c))}" for i, c in enumerate(series.clocks_hz)],
            "hoverinfo": "text",
        }
    )
    draft.y_axis["domain"] = [0.34, 1]
    draft.layout["yaxis2"] = {
        "domain": [0, 0.24],
        "anchor": "x",
        "gridcolor": GRID,
        "zeroline": False,
        "automargin": True,
        "nticks": 4,
        "title": {"text": "SM clock, MHz", "standoff": 8},
    }


def _add_pauses(draft: Draft, series: Series) -> None:
    """Add a dotted line at each pause of the measurement, or at the longest ones if there are many."""
    longest = sorted(series.pauses, key=lambda p: -p[1])[:_MOST_PAUSES]
    line = {"color": NEUTRAL, "width": 1, "dash": "dot"}
    for before, _ in longest:
        draft.line(x0=before - 0.5, x1=before - 0.5, y0=0, y1=1, yref="paper", line=line, layer="below")
    if longest:
        draft.traces.append(
            {"type": "scatter", "x": [None], "y": [None], "mode": "lines", "line": line, "name": "pause",
             "hoverinfo": "skip"}
        )  # fmt: skip


def _add_seconds(draft: Draft, series: Series, under: str) -> None:
    """Add the start times of a few blocks below the lowest panel."""
    count = len(series.started_s)
    at = sorted({round(i * (count - 1) / 5) for i in range(6)})
    digits = 2 if series.started_s[-1] < 10 else 1
    draft.x_axis |= {
        "tickvals": at,
        "ticktext": [f"{series.started_s[i]:.{digits}f} s" for i in at],
        "title": {**draft.x_axis["title"], "text": f"start of the {count:,} blocks, in order of measurement"},
        "range": [-0.8, count - 0.2],
        "anchor": under,
    }
