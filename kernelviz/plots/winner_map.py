"""The fastest variant at each size: a strip of cells for one axis, a map for two."""

import math
from collections.abc import Iterator, Mapping, Sequence
from html import escape

import plotly.graph_objects as go

from kernelviz.core import Roof, Run, units
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.summary import best_of
from kernelviz.metrics.sweep import swept_axis, tied_axes
from kernelviz.metrics.winner import Outcome, Winner, winners
from kernelviz.plots.frame import companions, folded, framed, nothing, roofs_of, size_ticks, table_of
from kernelviz.plots.variant_styles import NEUTRAL, Styles, styles_of
from kernelviz.text import describe_verdict_reason, format_size, format_sizes, format_time, format_variant
from kernelviz.text.charts import describe_no_time
from kernelviz.text.winners import Beside, regions, strips

ROW_PX, LEAST_PX, NOTHING_PX = 46, 80, 220
"""The height of a row of cells, of the rows together at least, and of a chart without any."""
_ABOVE_PX, _AXIS_PX = 28, 48
"""The height of the margins, and of the ticks and the title between the cells and the legend."""
_PHONE_PX, _LEGEND_END_PX, _LEGEND_SIGN_PX, _LEGEND_LETTER_PX = 360, 35, 45, 4.9
_LEGEND_ROW_PX, _LEGEND_FRAME_PX = 19, 10
"""Of the legend on a phone of 390 pixels: the width of the chart, what Plotly leaves free at the end of a row, the width of a
sign and of a letter, and the heights of a row and of the rest."""
_INK, _PAPER = "#0F1413", "#FFFFFF"
"""A line in both colours is visible on the colour of each variant and in both themes."""
_TIE = "statistical tie"
_UNCLEAR = "unclear"
_NO_TIME = "no correct time"
_CROSSOVER = "winner changes"
_MORE = "+n: n more may win"
_MOST_MARKERS = 2
"""Markers in a cell of tied or unclear variants; the hover text names all of them."""
_MOST_TIMES = 5
"""Times in a hover text: Plotly shows no hover text that is taller than the chart, and these charts are low."""
_HATCHING: dict[Outcome, str] = {"won": "", "tied": "/", "unclear": ".", "none": "x"}


def winner_by_size(
    run: Run,
    *,
    axis: str | None = None,
    roofs: Sequence[Roof] | None = None,
    headline: Headline = "cold",
    beside: Sequence[str] = (),
) -> go.Figure:
    """A cell for each size, with the marker and colour of its fastest correct variant.

    Columns are the sizes of `axis`, and rows are the sizes of the other axes. A hatched cell is a statistical tie; in a dotted
    one it is unclear which variant is the fastest. The first two variants of such a cell are drawn, and how many more there are.
    A thick line separates neighbours that have no fastest variant in common. A click gives the key of the problem.
    """
    table = table_of(run, roofs_of(run, roofs), headline)
    winner_list = winners(table, headline)
    strip_rows = strips(winner_list, axis)
    if not strip_rows or not any(w.names for w in winner_list):
        return nothing(str(describe_no_time([run], headline)), height=NOTHING_PX)
    along = axis or swept_axis([w.problem for w in winner_list]) or ""
    best = best_of(table, headline)
    named = {w.problem.key: r.variant for s in strip_rows.values() for r in regions(s, best) for w in r.winners}
    sizes = sorted({w.problem.sizes[along] for w in winner_list})
    cells = {(sizes.index(w.problem.sizes[along]), row): w for row, s in enumerate(strip_rows.values()) for w in s}
    undecided_last = sorted(cells.items(), key=lambda cell: len(cell[1].names) > 1)
    styles = grouped(undecided_last, key=lambda cell: (_marked_variants(run, cell[1], named), cell[1].outcome))
    looks = styles_of(run.plan.op, (r.variant for r in run.results), beside or run.plan.variants)
    tiles = [_tiles(run, dict(some), names, outcome, looks) for (names, outcome), some in styles.items()]
    markers = _markers(run, cells, len(sizes), looks, named)
    figure = go.Figure([*tiles, *_crossovers(cells), *markers, *_more_variants(cells), *_legend(winner_list)])
    _finish(figure, strip_rows, winner_list, sizes, along)
    return figure


Cells = dict[tuple[int, int], Winner]


def _marked_variants(run: Run, one: Winner, named: Mapping[str, str | None]) -> tuple[str, ...]:
    """The variants drawn in a cell, in the order of the plan, so that cells with the same two look alike. `named`: the variant
    that the sentence below the chart names at each problem, which is always drawn."""
    first = sorted(one.names, key=lambda name: name != named.get(one.problem.key))  # stable
    return tuple(sorted(first[:_MOST_MARKERS], key=lambda name: _plan_order(run, name)))


def _plan_order(run: Run, variant: str) -> int:
    return (*run.plan.variants, variant).index(variant)


def _tiles(run: Run, cells: Cells, names: tuple[str, ...], outcome: Outcome, looks: Styles) -> go.Bar:
    """Cells with the same style: filled with the colour of the fastest variant, hatched or dotted with that of another one."""
    colours = [looks[name].colour for name in names]
    pattern: dict[str, object] = {"shape": _HATCHING[outcome]}
    if outcome == "none":
        pattern |= {"fgcolor": NEUTRAL, "size": 8}
    if len(names) > 1:
        pattern |= {"size": 9, "solidity": 0.5, "fgcolor": colours[1], "bgcolor": colours[0]}
    return go.Bar(
        x=[x for x, _ in cells],
        y=[1] * len(cells),
        base=[y - 0.5 for _, y in cells],
        width=1,
        marker={
            "color": colours[0] if colours else "rgba(0,0,0,0)",
            "pattern": pattern,
            "line": {"width": 1, "color": "rgba(255,255,255,0.35)" if names else NEUTRAL},
        },
        name=escape(" or ".join(map(format_variant, names)) or _NO_TIME),
        showlegend=False,
        customdata=[w.problem.key for w in cells.values()],
        hovertext=[_hover(run, w) for w in cells.values()],
        hoverinfo="text",
        unselected={"marker": {"opacity": 1}},
    )


def _hover(run: Run, one: Winner) -> str:
    """Hover text: sizes, the shortest times, the ratio of the second to the first, and the verdict's reason."""
    tied = " and ".join(map(format_variant, one.names[: 1 + len(one.tied)]))
    other = ", ".join(map(format_variant, one.unclear))
    heading = {
        "won": f"{tied} is the fastest",
        "tied": f"{tied} are the fastest ({_TIE})",
        "unclear": f"{tied} may be the fastest; unclear against {other}",
        "none": _NO_TIME,
    }[one.outcome]
    lines = [f"<b>{line}</b>" for line in folded(heading, 60)]
    lines += [escape(f"{format_sizes(one.problem)} · {one.problem.dtype}")]
    fastest = one.timed if len(one.timed) <= _MOST_TIMES else one.timed[: _MOST_TIMES - 1]
    lines += [f"{escape(format_variant(r.result.variant))}: {format_time(r.figure)}" for r in fastest]
    if len(fastest) < len(one.timed):
        lines.append(f"{len(one.timed) - len(fastest)} others take longer (see the table)")
    ratio = one.verdict.ratio if one.verdict else None
    if one.second is not None and one.ratio is not None:
        factor, interval = f"{one.ratio:,.{units.factor_decimals(one.ratio, most=3)}f}", ""
        if ratio and ratio.low and ratio.high:
            factor, low, high = units.factor_with_interval(one.ratio, ratio.low, ratio.high, most=3)
            interval = f" ({low}–{high})"
        lines.append(f"{escape(format_variant(one.second.result.variant))} takes {factor}× the time{interval}")
    if one.verdict is not None:
        lines += folded(str(describe_verdict_reason(one.verdict.reason)), 60)
    lacking = len(run.plan.variants) - len(one.timed)
    if lacking:
        lines.append(f"{lacking} of {len(run.plan.variants)} variants have no correct time here")
    return "<br>".join(lines)


def _crossovers(cells: Cells) -> list[go.Scatter]:
    """Lines between neighbours that have no possible fastest variant in common, and their entry in the legend."""
    xs: list[float | None] = []
    ys: list[float | None] = []
    for (x, y), one in cells.items():
        for other, ends in (
            ((x + 1, y), ((x + 0.5, y - 0.5), (x + 0.5, y + 0.5))),
            ((x, y + 1), ((x - 0.5, y + 0.5), (x + 0.5, y + 0.5))),
        ):
            neighbour = cells.get(other)
            if neighbour is not None and one.names and neighbour.names and not set(one.names) & set(neighbour.names):
                xs += [ends[0][0], ends[1][0], None]
                ys += [ends[0][1], ends[1][1], None]
    if not xs:
        return []
    common = {"mode": "lines", "hoverinfo": "skip"}
    return [
        go.Scatter(x=xs, y=ys, line={"color": _PAPER, "width": 7}, showlegend=False, **common),
        go.Scatter(x=xs, y=ys, line={"color": _INK, "width": 3}, showlegend=False, **common),
        # In the dark theme, the line itself would be invisible in the legend.
        go.Scatter(x=[None], y=[None], line={"color": NEUTRAL, "width": 4}, name=_CROSSOVER, **common),
    ]


def _markers(
    run: Run, cells: Cells, columns: int, looks: Styles, named: Mapping[str, str | None]
) -> Iterator[go.Scatter]:
    """The marker of the fastest variant on each cell. The markers of two possible ones are beside or above each other."""
    size = 11 if columns <= 9 else 9 if columns <= 18 else 6
    positions: dict[str, list[tuple[float, float]]] = {}
    for (x, y), one in cells.items():
        variants = _marked_variants(run, one, named)
        up = 0.1 if len(one.names) > _MOST_MARKERS else 0.0  # below them is how many more there are
        for offset, name in zip((0.0,) if len(variants) < 2 else (-0.22, 0.22), variants, strict=False):
            # In narrow cells, markers side by side would touch.
            positions.setdefault(name, []).append((x + offset, y + up) if columns <= 9 else (x, y + up - offset))
    for name in sorted(positions, key=lambda n: _plan_order(run, n)):
        style = looks[name]
        common = {"mode": "markers", "hoverinfo": "skip", "name": escape(format_variant(name))}
        marker = {"symbol": style.marker, "size": size, "color": _PAPER, "line": {"width": 1.2, "color": _INK}}
        xs, ys = zip(*positions[name], strict=True)
        yield go.Scatter(x=xs, y=ys, marker=marker, showlegend=False, **common)
        in_legend = {"symbol": style.marker, "size": 10, "color": style.colour}
        yield go.Scatter(x=[None], y=[None], marker=in_legend, showlegend=True, **common)


def _more_variants(cells: Cells) -> Iterator[go.Scatter]:
    """How many variants without a marker may be the fastest, too, at the lower edge of their cells, and what that means in the
    legend."""
    more = {place: len(one.names) - _MOST_MARKERS for place, one in cells.items() if len(one.names) > _MOST_MARKERS}
    if more:
        xs, ys = zip(*more, strict=True)
        font = {"size": 10, "color": _PAPER, "shadow": f"0 0 2px {_INK}, 0 0 2px {_INK}, 0 0 3px {_INK}"}
        yield go.Scatter(
            x=xs, y=[y - 0.4 for y in ys], mode="text", text=[f"+{count}" for count in more.values()], textfont=font,
            hoverinfo="skip", showlegend=False,
        )  # fmt: skip
        # An entry of the legend that has only a name: what the text means.
        invisible = {"color": "rgba(0,0,0,0)"}
        yield go.Scatter(
            x=[None], y=[None], mode="markers", marker=invisible, name=_MORE, hoverinfo="skip", showlegend=True
        )


def _legend(winner_list: Sequence[Winner]) -> Iterator[go.Bar]:
    """The meaning of hatching, dots and crosses, if there are any."""
    labels: dict[Outcome, str] = {"tied": _TIE, "unclear": _UNCLEAR, "none": _NO_TIME}
    for outcome, label in labels.items():
        if any(w.outcome == outcome for w in winner_list):
            pattern = {"shape": _HATCHING[outcome], "size": 6, "fgcolor": NEUTRAL, "bgcolor": "rgba(0,0,0,0)"}
            marker = {"color": "rgba(0,0,0,0)", "pattern": pattern, "line": {"width": 1, "color": NEUTRAL}}
            yield go.Bar(x=[None], y=[None], marker=marker, name=label, hoverinfo="skip", showlegend=True)


def _legend_px(names: Sequence[str]) -> int:
    """The height of the legend on a phone, where all columns are as wide as the longest name needs.

    >>> _legend_px(["torch eager", "triton block"]), _legend_px(["cuda wgmma two warpgroups by size"] * 6)
    (29, 124)
    """
    column_px = _LEGEND_SIGN_PX + _LEGEND_LETTER_PX * max(map(len, names), default=0)
    columns = max(1, int((_PHONE_PX - _LEGEND_END_PX) / column_px))
    return _LEGEND_FRAME_PX + _LEGEND_ROW_PX * math.ceil(len(names) / columns)


def _finish(
    figure: go.Figure,
    strip_rows: dict[Beside, list[Winner]],
    winner_list: Sequence[Winner],
    sizes: Sequence[int],
    along: str,
) -> None:
    count, other_sizes = len(strip_rows), next(iter(strip_rows))
    problems = [w.problem for w in winner_list]
    axis_name = " = ".join(tied_axes(problems, along)) or along
    cells_px = max(LEAST_PX, (ROW_PX if count < 5 else 30) * count)
    legend_px = _legend_px([trace.name for trace in figure.data if trace.showlegend is not False])
    height = _ABOVE_PX + cells_px + _AXIS_PX + legend_px
    framed(
        figure,
        height=height,
        x_title=escape(" · ".join(filter(None, (axis_name, companions(problems, along))))),
        y_title=escape(", ".join(a for a, _ in other_sizes)),
    )
    ticks, labels = size_ticks(sizes)
    figure.update_xaxes(
        tickvals=[sizes.index(s) for s in ticks], ticktext=labels, range=[-0.5, len(sizes) - 0.5], showgrid=False
    )
    labels = [", ".join(format_size(s) for _, s in b) for b in strip_rows]
    step = math.ceil(count / 16)
    figure.update_yaxes(
        tickvals=list(range(0, count, step)), ticktext=labels[::step], range=[-0.5, count - 0.5],
        showgrid=False, showticklabels=bool(other_sizes),
    )  # fmt: skip
    names = {
        "x": {"title": escape(axis_name), "labels": [format_size(s) for s in sizes]},
        "y": {"labels": labels, "omit": not other_sizes},
    }
    # By default it would have half of the chart, and scroll.
    legend = {"y": -_AXIS_PX / cells_px, "traceorder": "normal", "maxheight": (legend_px + _LEGEND_ROW_PX) / height}
    # Another revision than that of the charts with lines, so that Plotly does not keep the range of this axis for theirs.
    figure.update_layout(barmode="overlay", meta=names, legend=legend, uirevision="winners")
