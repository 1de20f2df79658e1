"""Comparison of two runs: a bar for each case, the worst first, and the samples of both sides of one case."""

import math
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from kernelviz.core import Figure, units
from kernelviz.metrics.comparison import WORDS, Comparison, Pair, PairWord
from kernelviz.metrics.summary import figure_of
from kernelviz.metrics.sweep import problem_words, telling_axes
from kernelviz.plots.frame import MOST_SVG_POINTS, Draft, Props, nothing
from kernelviz.plots.samples import QUANTILES
from kernelviz.plots.variant_styles import BAD, GOOD, NEUTRAL, format_variant, style_of
from kernelviz.text.comparison import SIGNS, describe_pair, format_case, format_change, sign_of
from kernelviz.text.results import format_time
from kernelviz.text.verdicts import describe_verdict_reason

ROW_PX, FRAME_PX = 22, 96
SAMPLES_PX = 360
_LOOKS: dict[PairWord, Props] = {
    "slower": {"color": BAD},
    "unclear": {"color": NEUTRAL, "pattern": {"shape": "/", "size": 5}},
    "same": {"color": NEUTRAL},
    "faster": {"color": GOOD},
    "same code": {"color": NEUTRAL, "pattern": {"shape": ".", "size": 5}, "opacity": 0.6},
    "not comparable": {"color": NEUTRAL, "pattern": {"shape": "x", "size": 5}, "opacity": 0.35},
}
_BAND = "rgba(124,135,132,0.22)"
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
"""Between ticks, in percent."""
_MOST_TICKS = 6
_LEAST_REACH = 1.006
"""The range is at least this ratio, so that differences below the smallest noise floor do not fill the frame."""


def ratio_by_case(comparison: Comparison, *, most: int | None = None) -> go.Figure:
    """Time of B divided by time of A for each case, worst first, on a logarithmic axis that contains 1. Whiskers: 95 % intervals.

    The grey band behind a bar is its noise floor: a verdict needs the whole interval outside. `most`: at most this many
    cases, the worst ones. A click gives the key of the pair.
    """
    visible = comparison.pairs[:most]
    if not visible:
        return nothing("A and B have no case in common, so there is nothing to compare.", height=FRAME_PX + 2 * ROW_PX)
    axes = telling_axes([p.problem for p in comparison.pairs])
    names = dict(zip((p.key for p in visible), _labels(visible, axes, comparison), strict=True))
    draft = Draft(FRAME_PX + ROW_PX * len(visible), x_title="B is faster ←  → B is slower")
    draft.traces += [_bands(visible, names)] + [
        _bars(verdict, group, names, comparison) for verdict, group in _by_verdict(visible)
    ]
    for pair in visible:
        if pair.ratio is None:
            draft.note(
                escape(str(describe_verdict_reason(pair.reason))),
                x=0,
                xref="x domain",
                y=names[pair.key],
                xanchor="left",
                font={"size": 11},
            )
    draft.line_at(0, {"color": NEUTRAL, "width": 1.5})
    low, high = _range(visible)
    ticks, labels = ratio_ticks(low, high)
    draft.x_axis |= {"tickvals": [math.log(t) for t in ticks], "ticktext": labels, "zeroline": False}
    draft.x_axis |= {"range": [math.log(low), math.log(high)]}
    draft.y_axis |= {"autorange": "reversed", "showgrid": False, "categoryorder": "array", "dtick": 1}
    draft.y_axis |= {"categoryarray": list(names.values()), "tickfont": {"size": 11}, "type": "category"}
    draft.layout |= {"barmode": "overlay", "bargap": 0.25}
    draft.layout["legend"] = {**draft.layout["legend"], "y": 1, "yanchor": "bottom"}
    draft.layout["margin"] = {**draft.layout["margin"], "t": 40}
    return draft.figure()


def _labels(visible: Sequence[Pair], axes: Sequence[str], comparison: Comparison) -> Iterator[str]:
    """The name of each row with the sign of its verdict and the change; spaces make equal names unique."""
    seen: dict[str, int] = {}
    for pair in visible:
        change = "" if pair.ratio is None else f" {format_change(pair.ratio.estimate)}"
        name = f"{escape(str(format_case(pair, axes, by_problem=comparison.by_problem)))} {sign_of(pair)}{change}"
        seen[name] = seen.get(name, 0) + 1
        yield name + " " * (seen[name] - 1)


def _by_verdict(visible: Sequence[Pair]) -> Iterator[tuple[PairWord, list[Pair]]]:
    for verdict in WORDS:
        group = [p for p in visible if p.word == verdict]
        if group:
            yield verdict, group


def _bands(visible: Sequence[Pair], names: dict[str, str]) -> Props:
    """The noise floor of each pair that has one."""
    floors = [(names[p.key], math.log1p(p.floor)) for p in visible if p.floor is not None]
    return {
        "type": "bar",
        "orientation": "h",
        "y": [name for name, _ in floors],
        "x": [2 * width for _, width in floors],
        "base": [-width for _, width in floors],
        "width": 0.95,
        "marker": {"color": _BAND},
        "name": "noise floor",
        "hoverinfo": "skip",
        "showlegend": bool(floors),
    }


def _bars(verdict: PairWord, group: Sequence[Pair], names: dict[str, str], comparison: Comparison) -> Props:
    ratios = [p.ratio for p in group]
    middles = [0.0 if r is None else math.log(r.estimate) for r in ratios]
    ends = [(r.low, r.high) if r is not None and r.low and r.high else None for r in ratios]
    return {
        "type": "bar",
        "orientation": "h",
        "y": [names[p.key] for p in group],
        "x": middles,
        "width": 0.5,
        "marker": _LOOKS[verdict],
        "name": f"{SIGNS[verdict]} {verdict}",
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [0.0 if e is None else math.log(e[1]) - m for e, m in zip(ends, middles, strict=True)],
            "arrayminus": [0.0 if e is None else m - math.log(e[0]) for e, m in zip(ends, middles, strict=True)],
            "thickness": 1.5,
            "width": 3,
            "color": NEUTRAL,
        },
        "customdata": [p.key for p in group],
        "hovertext": [_hover(p, comparison) for p in group],
        "hoverinfo": "text",
    }


def _hover(pair: Pair, comparison: Comparison) -> str:
    first, second = (figure_of(r.timing, comparison.headline) for r in (pair.before, pair.after))
    names = (format_variant(r.variant) for r in (pair.before, pair.after))
    lines = [f"<b>{escape(problem_words(pair.problem))}</b>"]
    lines += [
        f"{side}: {escape(name)}, {format_time(f)}" for side, name, f in zip("AB", names, (first, second), strict=True)
    ]
    lines += [escape(str(describe_pair(pair))), escape(str(describe_verdict_reason(pair.reason)))]
    if pair.floor is not None:
        lines.append(f"noise floor ±{units.percent(pair.floor)}")
    return "<br>".join(dict.fromkeys(lines))


def _range(visible: Sequence[Pair]) -> tuple[float, float]:
    """The range of ratios: all estimates, and intervals and thresholds as long as they do not flatten the bars."""
    ratios = [p.ratio for p in visible if p.ratio is not None]
    estimates = [r.estimate for r in ratios] or [1.0]
    reach = max(max(estimates), 1 / min(estimates), _LEAST_REACH)
    bounds = [v for r in ratios for v in (r.low, r.high) if v] + [1 + p.floor for p in visible if p.floor]
    most = reach**1.6
    low = min([*estimates, 1 / _LEAST_REACH, *(v for v in bounds if v > 1 / most)])
    high = max([*estimates, _LEAST_REACH, *(v for v in bounds if v < most)])
    pad = (high / low) ** 0.06
    return low / pad, high * pad


def ratio_ticks(low: float, high: float) -> tuple[list[float], list[str]]:
    """Ticks between two ratios: percent if the range is small, else powers of two. 1 is always a tick.

    >>> ratio_ticks(0.98, 1.031)
    ([0.98, 0.99, 1.0, 1.01, 1.02, 1.03], ['-2 %', '-1 %', 'equal', '+1 %', '+2 %', '+3 %'])
    >>> ratio_ticks(0.2, 1.2)
    ([0.25, 0.5, 1.0], ['4× as fast', '2× as fast', 'equal'])
    """
    low, high = min(low, 1.0), max(high, 1.0)
    if high / low < 2:
        width = (high - low) * 100
        step = next((s for s in _STEPS if width / s < _MOST_TICKS), 25)
        first, last = math.ceil(round((low - 1) * 100 / step, 6)), math.floor(round((high - 1) * 100 / step, 6))
        percents = [round(i * step, 1) for i in range(first, last + 1)]
        return [round(1 + p / 100, 6) for p in percents], ["equal" if p == 0 else f"{p:+g} %" for p in percents]
    exponents = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    stride = math.ceil(len(exponents) / _MOST_TICKS)
    multiples = [e for e in exponents if e % stride == 0]
    return [2.0**e for e in multiples], [_factor(e) for e in multiples]


def _factor(exponent: int) -> str:
    return "equal" if exponent == 0 else f"{2 ** abs(exponent)}× as {'long' if exponent > 0 else 'fast'}"


def shares_by_time(comparison: Comparison, pair: Pair) -> go.Figure:
    """The cumulative distribution of the samples of both sides of one pair. A is grey and dashed.

    Markers are at the 50th, 90th and 99th percentile.
    """
    figures = [figure_of(r.timing, comparison.headline) for r in (pair.before, pair.after)]
    known = [(side, f) for side, f in zip("AB", figures, strict=True) if f is not None and f.samples]
    if not known:
        return nothing(
            "The samples of this case are not stored, so their distribution cannot be drawn.", height=SAMPLES_PX
        )
    typical_s = float(np.median([f.estimate for _, f in known]))
    scale, unit = units.time_unit(typical_s)
    draft = Draft(SAMPLES_PX, x_title=f"sample time, {unit}", y_title="samples up to this time, %")
    for side, figure in known:
        result = pair.before if side == "A" else pair.after
        draft.traces += _steps(side, result.variant, pair.problem.op, figure, scale)
    draft.y_axis |= {"range": [-2, 103], "tickvals": [0, 25, 50, 75, 90, 99]}
    # Without the slowest 0.5 % of the samples: a few outliers (another process, for example) would flatten both curves.
    low = min(float(np.min(f.samples or ())) for _, f in known)
    high = max(float(np.quantile(f.samples or (), 0.995)) for _, f in known)
    draft.x_axis["range"] = [(low - 0.05 * (high - low)) / scale, (high + 0.08 * (high - low)) / scale]
    return draft.figure()


def _steps(side: str, variant: str, op: str, figure: Figure, scale: float) -> list[Props]:
    ordered = np.sort(np.asarray(figure.samples, dtype=np.float64))
    count, style = len(ordered), style_of(op, variant)
    colour = NEUTRAL if side == "A" else style.colour
    name = f"{side}: {escape(format_variant(variant))}"
    at = np.quantile(ordered, QUANTILES)
    return [
        {
            "type": "scattergl" if count > MOST_SVG_POINTS else "scatter",
            "x": np.concatenate(([ordered[0]], ordered)) / scale,
            "y": np.arange(count + 1) / count * 100,
            "mode": "lines",
            "line": {"color": colour, "width": 2, "shape": "hv", "dash": "dash" if side == "A" else "solid"},
            "hoverinfo": "skip",
            "showlegend": False,
            "legendgroup": side,
        },
        {
            "type": "scatter",
            "x": at / scale,
            "y": [q * 100 for q in QUANTILES],
            "mode": "markers",
            "marker": {"symbol": f"{style.marker}-open" if side == "A" else style.marker, "size": 9, "color": colour},
            "name": name,
            "legendgroup": side,
            "hovertext": [
                f"<b>{name}</b><br>{q * 100:g} % of {count:,} samples take at most {units.seconds(float(t))}"
                for q, t in zip(QUANTILES, at, strict=True)
            ],
            "hoverinfo": "text",
        },
    ]


def describe_comparison(comparison: Comparison) -> str:
    """Alternative text of the bars."""
    worst = comparison.pairs[0] if comparison.pairs else None
    first = "" if worst is None else f" Worst: {worst.after.case.key}, {describe_pair(worst)}."
    return (
        f"Time of B divided by time of A for {len(comparison.pairs)} cases.{first} The table below has the same values."
    )
