"""Comparison of two runs: a bar for each case, the worst first, and the samples of both sides of one case."""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from html import escape

import numpy as np
import plotly.graph_objects as go

from kernelviz.core import units
from kernelviz.metrics.comparison import PAIR_KINDS, Comparison, Pair, PairKind
from kernelviz.metrics.figures import figure_of
from kernelviz.metrics.sweep import varying_axes
from kernelviz.plots.frame import Draft, Props, folded, intervals, nothing, style_in
from kernelviz.plots.samples import SHARE_AXIS, distribution, vertices_of
from kernelviz.plots.variant_styles import BAD, GOOD, NEUTRAL
from kernelviz.text import (
    describe_pair,
    describe_verdict_reason,
    format_problem,
    format_sizes,
    format_time,
    format_variant,
)
from kernelviz.text.comparison import KIND_NAMES, SIGNS, describe_verdict_of, format_factor, sign_of

ROW_PX, TWO_LINES_PX, FRAME_PX = 22, 34, 112
"""Of a row whose label has one line (sizes) or two (variant and sizes): in one line, both leave a phone no space for bars."""
_SECOND_LINE_PX = 16
"""The second line of the labels of ticks, below which the title of the axis begins."""
SAMPLES_PX = 360
_LOOKS: dict[PairKind, Props] = {
    "slower": {"color": BAD},
    "unclear": {"color": NEUTRAL, "pattern": {"shape": "/", "size": 5}},
    "same": {"color": NEUTRAL},
    "faster": {"color": GOOD},
    "same code": {"color": NEUTRAL, "pattern": {"shape": ".", "size": 5}, "opacity": 0.6},
    "not comparable": {"color": NEUTRAL, "pattern": {"shape": "x", "size": 5}, "opacity": 0.35},
}
_BAND = "rgba(124,135,132,0.22)"
_STEPS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20)
"""Possible distances between ticks, in percent."""
_MOST_TICKS = 4
"""Each row has its exact factor in its label, and on a phone more ticks overlap."""
_LEAST_REACH = 1.006
"""The range is at least this ratio, so that differences below the smallest noise floor do not fill the frame."""


def ratio_by_case(comparison: Comparison, *, most: int | None = None) -> go.Figure:
    """Time of B divided by time of A for each case, worst first, on a logarithmic axis that contains 1.

    Whiskers are 95 % intervals. The grey band behind a bar is its noise floor; B is faster or slower if the whole interval is
    outside. `most` limits the chart to the worst cases. A click gives the key of the pair.
    """
    visible = comparison.pairs[:most]
    if not visible:
        return nothing("A and B have no case in common, so there is nothing to compare.", height=FRAME_PX + 2 * ROW_PX)
    if all(p.ratio is None for p in comparison.pairs):
        reasons = Counter(str(describe_verdict_reason(p.reason)) for p in comparison.pairs)
        return nothing(
            f"No case has two times to compare: {reasons.most_common(1)[0][0]}.", height=FRAME_PX + 2 * ROW_PX
        )
    axes = varying_axes([p.problem for p in comparison.pairs])
    names = dict(zip((p.key for p in visible), _labels(visible, axes, comparison), strict=True))
    row_px = ROW_PX if comparison.by_problem or not axes else TWO_LINES_PX
    draft = Draft(FRAME_PX + row_px * len(visible), x_title="← B faster · B slower →")
    groups = {verdict: [p for p in visible if p.kind == verdict] for verdict in PAIR_KINDS}
    bars = (_bars(verdict, group, names, comparison) for verdict, group in groups.items() if group)
    draft.traces = [_bands(visible, names), *bars]
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
    draft.x_axis |= {
        "tickvals": [math.log(t) for t in ticks],
        "ticktext": [label.replace(" ", "<br>") for label in labels],  # on a phone, longer lines would overlap
        "tickangle": 0,
        "range": [math.log(low), math.log(high)],
    }
    draft.y_axis |= {
        "autorange": "reversed",
        "showgrid": False,
        "categoryorder": "array",
        "categoryarray": list(names.values()),
        "dtick": 1,
        "tickfont": {"size": 11},
        "type": "category",
    }
    draft.layout |= {
        "meta": {"x": {"title": "time of B / time of A", "log": True}, "y": {"title": "case"}},
        "barmode": "overlay",
        "bargap": 0.25,
        "legend": {**draft.layout["legend"], "y": 1, "yanchor": "bottom"},
        "margin": {**draft.layout["margin"], "t": 40, "b": draft.layout["margin"]["b"] + _SECOND_LINE_PX},
        "minreducedheight": ROW_PX,  # by default, Plotly takes the space of the ticks for a plot of less than 64 pixels
    }
    return draft.figure()


def _labels(visible: Sequence[Pair], axes: Sequence[str], comparison: Comparison) -> Iterator[str]:
    """The name of each row with the sign of its verdict and the change; spaces make equal names unique."""
    seen: Counter[str] = Counter()
    for pair in visible:
        change = "" if pair.ratio is None else f" {format_factor(pair.ratio)}"
        lines = ["" if comparison.by_problem else format_variant(pair.before.variant), format_sizes(pair.problem, axes)]
        case = "<br>".join(escape(str(line)) for line in lines if str(line)) or escape(pair.problem.op)
        name = f"{case} {sign_of(pair)}{change}"
        yield name + " " * seen[name]
        seen[name] += 1


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


def _bars(verdict: PairKind, group: Sequence[Pair], names: dict[str, str], comparison: Comparison) -> Props:
    ratios = [p.ratio for p in group]
    middles = [0.0 if r is None else math.log(r.estimate) for r in ratios]
    ends = [(math.log(r.low), math.log(r.high)) if r is not None and r.low and r.high else (None, None) for r in ratios]
    return {
        "type": "bar",
        "orientation": "h",
        "y": [names[p.key] for p in group],
        "x": middles,
        "width": 0.5,
        "marker": _LOOKS[verdict],
        "name": f"{SIGNS[verdict]} {KIND_NAMES[verdict]}",
        "error_x": intervals(middles, ends, NEUTRAL),
        "customdata": [p.key for p in group],
        "hovertext": [_hover(p, comparison) for p in group],
        "hoverinfo": "text",
    }


def _hover(pair: Pair, comparison: Comparison) -> str:
    sides = [
        f"{side}: {escape(format_variant(r.variant))}, {format_time(figure_of(r.timing, comparison.headline))}"
        for side, r in (("A", pair.before), ("B", pair.after))
    ]
    lines = [
        f"<b>{escape(format_problem(pair.problem))}</b>",
        *sides,
        escape(str(describe_pair(pair))),
        *folded(str(describe_verdict_of(pair)), 60),
    ]
    return "<br>".join(lines)


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
    """Ticks between two ratios: equal steps of the factor if the range is small, else powers of two. 1 is always a tick.

    >>> ratio_ticks(0.98, 1.021)
    ([0.980392, 1.0, 1.02], ['1.02× faster', 'equal', '1.02× slower'])
    >>> ratio_ticks(0.2, 1.2)
    ([0.25, 0.5, 1.0], ['4× faster', '2× faster', 'equal'])
    """
    low, high = min(low, 1.0), max(high, 1.0)
    if high / low < 2:
        width = (high - low) * 100
        step = next((s for s in _STEPS if width / s < _MOST_TICKS), 25)
        faster, slower = (math.floor(round((factor - 1) * 100 / step, 6)) for factor in (1 / low, high))
        steps = range(-faster, slower + 1)
        factors = [round(1 + abs(i) * step / 100, 6) for i in steps]
        ticks = [round(f if i > 0 else 1 / f, 6) for i, f in zip(steps, factors, strict=True)]
        return ticks, [_tick(i, f) for i, f in zip(steps, factors, strict=True)]
    every = range(math.ceil(math.log2(low)), math.floor(math.log2(high)) + 1)
    stride = math.ceil(len(every) / _MOST_TICKS)
    exponents = [e for e in every if e % stride == 0]
    return [2.0**e for e in exponents], [_tick(e, 2 ** abs(e)) for e in exponents]


def _tick(side: int, factor: float) -> str:
    """The label of a tick at a factor. `side`: above 0, B is slower there."""
    return f"{factor:g}× {'slower' if side > 0 else 'faster'}" if side else "equal"


def _no_samples(comparison: Comparison, untimed: Sequence[str]) -> str:
    """Why the distribution of a case cannot be drawn. `untimed`: the sides without a time."""
    if not untimed:
        return "The samples of this case are not stored, so their distribution cannot be drawn."
    who = f"Neither {' nor '.join(untimed)} has a" if len(untimed) > 1 else f"{untimed[0]} has no"
    return f"{who} correct {comparison.headline} time of this case, so there are no samples to draw."


def shares_by_time(comparison: Comparison, pair: Pair) -> go.Figure:
    """The cumulative distribution of the samples of both sides of one pair. A is grey and dashed.

    Markers are at the 50th, 90th and 99th percentile.
    """
    sides = [(s, r, figure_of(r.timing, comparison.headline)) for s, r in (("A", pair.before), ("B", pair.after))]
    known = [
        (side, r.variant, f, np.sort(np.asarray(f.samples))) for side, r, f in sides if f is not None and f.samples
    ]
    if not known:
        return nothing(_no_samples(comparison, [side for side, _, f in sides if f is None]), height=SAMPLES_PX)
    scale, unit = units.time_unit(float(np.median([f.estimate for _, _, f, _ in known])))
    of = vertices_of(f for _, _, f, _ in known)
    draft = Draft(SAMPLES_PX, x_title=f"{of} time, {unit}", y_title=f"share of {of}s up to this time, %")
    for side, variant, _, ordered in known:
        style, name = (
            style_in((comparison.a, comparison.b), pair.problem.op, variant),
            f"{side}: {format_variant(variant)}",
        )
        look = (
            {"colour": NEUTRAL, "symbol": f"{style.marker}-open", "dash": "dash"}
            if side == "A"
            else {"colour": style.colour, "symbol": style.marker, "dash": "solid"}
        )
        draft.traces += distribution(ordered, scale, of=of, name=name, group=side, **look)
    draft.y_axis |= SHARE_AXIS
    # Without the slowest 0.5 % of the samples: a few outliers (another process, for example) would flatten both curves.
    low = min(float(ordered[0]) for *_, ordered in known)
    high = max(float(np.quantile(ordered, 0.995)) for *_, ordered in known)
    draft.x_axis["range"] = [(low - 0.05 * (high - low)) / scale, (high + 0.08 * (high - low)) / scale]
    return draft.figure()
