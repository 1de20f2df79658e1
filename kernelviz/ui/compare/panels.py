"""The page Compare: two runs or two variants, verdicts worst first, what differs between them, the samples behind one case."""

from __future__ import annotations

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.bench.comparison import compare_stored
from kernelviz.core import units
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.comparison import WORDS, Comparison, Pair
from kernelviz.metrics.summary import figure_of
from kernelviz.metrics.sweep import problem_words, telling_axes
from kernelviz.plots.comparison import comparison_words
from kernelviz.plots.samples import samples_words
from kernelviz.plots.tiles import Tile
from kernelviz.plots.variant_styles import variant_words
from kernelviz.tables.column import View
from kernelviz.tables.comparison import pair_columns
from kernelviz.text.comparison import (
    case_words,
    change_words,
    mean_basis,
    noise_words,
    noisy,
    only_words,
    pair_words,
    refusal_words,
)
from kernelviz.text.differences import differences
from kernelviz.text.quality import describe_quality_of
from kernelviz.text.text import sentence_case
from kernelviz.text.times import format_time
from kernelviz.text.verdicts import describe_pair_reason
from kernelviz.ui.compare import choice
from kernelviz.ui.compare import text as words
from kernelviz.ui.shared import site, table, tiles, view_filters
from kernelviz.ui.shared.text import plain

MOST_BARS = 24
_WORST = f"the worst {MOST_BARS}"


_CSS = """
<style>
.st-key-differs li { margin-bottom: 0.1rem; }
.st-key-one_pair p { font-size: 0.93rem; }
/* The names of runs are long: a line each on a phone. */
@media (max-width: 640px) { :is(.st-key-a, .st-key-b) { min-width: 100%; } }
</style>
"""


def heading() -> None:
    """Title, and how to read the page."""
    st.html(_CSS)
    st.markdown("#### Compare")
    st.markdown(words.INTRO)


def show(bench: Bench, run_a: str, run_b: str) -> None:
    """Two chosen runs: which variants and times, the summary, what differs, the bars, one case, the table."""
    choices = st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="choices")
    with choices:
        variant_a, variant_b = choice.chosen_variants(bench, run_a, run_b)
        l2 = choice.headline()
    if run_a == run_b and (variant_a or variant_b) == (variant_b or variant_a):
        st.info(words.SAME_RUN, icon=":material/call_split:")
        return
    found = compare_stored(bench, run_a, run_b, variant_a=variant_a, variant_b=variant_b, l2=l2)
    if not found.pairs:
        st.info(_no_pairs(found), icon=":material/link_off:")
        _what_differs(found)
        return
    _tiles(found)
    _broken(found)
    _refused(found)
    left, right = st.columns([1.6, 1], gap="medium")
    with right:
        _noise(found)
        _what_differs(found)
    with left:
        _bars(found)
    _one(found)
    _table(found)
    _only(found)
    _rule(found)


def _no_pairs(found: Comparison) -> str:
    a, b = (f"{r.plan.op} {r.plan.problems[0].dtype}" for r in (found.a, found.b))
    return plain(words.NO_PAIRS.format(a=a, b=b))


def _tiles(found: Comparison) -> None:
    counts, axes = found.counts, telling_axes([p.problem for p in found.pairs])
    judged = found.judged

    def at(pair: Pair | None) -> str:
        if pair is None or pair.ratio is None:
            return "no case"
        return f"{change_words(pair.ratio.estimate)}, {case_words(pair, axes, by_problem=found.by_problem)}"

    worst = next((p for p in judged if p.word == "slower"), None)
    best = next((p for p in reversed(judged) if p.word == "faster"), None)
    of = f"of {len(judged)} with a verdict"
    mean = found.mean_ratio
    alike = [p for p in found.pairs if p.word == "same code"]
    other = f"{len(alike)} same code, {counts['not comparable']} not comparable"
    shown = (
        Tile("▼ slower", f"{counts['slower']} {of}", f"worst: {at(worst)}" if worst else "none"),
        Tile("▲ faster", f"{counts['faster']} {of}", f"best: {at(best)}" if best else "none"),
        Tile("= same, ? unclear", f"{counts['same']} same, {counts['unclear']} unclear", f"beside them {other}"),
        Tile("Time of B against A", "no verdict" if mean is None else change_words(mean), mean_basis(found)),
    )
    tiles.draw(shown)


def _broken(found: Comparison) -> None:
    broken = [p for p in found.pairs if p.broken]
    if not broken:
        return
    axes = telling_axes([p.problem for p in found.pairs])
    names = "; ".join(case_words(p, axes, by_problem=found.by_problem) for p in broken[:6])
    more = f" and {len(broken) - 6} more" if len(broken) > 6 else ""
    st.error(
        f"**{len(broken)} case{'s' if len(broken) != 1 else ''} had a correct time in A and none in B**: {plain(names)}{more}.",
        icon=":material/error:",
    )


def _refused(found: Comparison) -> None:
    said = refusal_words(found)
    if said and not found.judged:
        st.warning(plain(said), icon=":material/block:")
    elif said:
        st.caption(plain(said))


def _noise(found: Comparison) -> None:
    st.markdown("##### The noise")
    if noisy(found):
        st.warning(plain(noise_words(found)), icon=":material/waves:")
    else:
        st.markdown(plain(noise_words(found)))


def _what_differs(found: Comparison) -> None:
    st.markdown("##### What differs beside the code")
    listed = differences(found)
    if not listed:
        st.markdown(words.ONE_RUN if one_run(found.a, found.b) else words.ALIKE)
        return
    with st.container(key="differs"):
        st.markdown("\n".join(f"- :red[**≠ {plain(d.what)}**: {plain(d.values)}]" for d in listed))


def _bars(found: Comparison) -> None:
    many = len(found.pairs) > MOST_BARS
    every = f"all {len(found.pairs)}"
    rows = _WORST
    if many:
        view_filters.seed("rows", [_WORST, every], _WORST)
        rows = (
            st.segmented_control(
                "Cases shown", [_WORST, every], key="rows", required=True, label_visibility="collapsed"
            )
            or _WORST
        )
        view_filters.keep("rows", rows, _WORST)
    figure = plots.ratio_by_case(found, most=MOST_BARS if many and rows == _WORST else None)
    event = st.plotly_chart(
        figure,
        key="ratios",
        config=view_filters.CHART,
        alt=comparison_words(found),
        on_select="rerun",
        selection_mode="points",
    )
    points = event.selection.points if event is not None else []
    view_filters.follow({"seen_bar": str(points[-1].get("customdata")) if points else None}, "compare_pending")


def _one(found: Comparison) -> None:
    """One case: its verdict in words, and the samples of both sides."""
    keys = {p.key: p for p in found.pairs}
    axes = telling_axes([p.problem for p in found.pairs])
    pending = st.session_state.pop("compare_pending", None)
    if pending in keys:
        st.session_state["case"] = pending
    if st.session_state.get("case") not in (None, *keys):
        del st.session_state["case"]
    worst = next((p.key for p in found.pairs if p.ratio is not None), found.pairs[0].key)
    st.markdown("##### One case")
    view_filters.seed("case", list(keys), worst)
    key = st.selectbox(
        "Case", list(keys), key="case", label_visibility="collapsed",
        format_func=lambda k: f"{case_words(keys[k], axes, by_problem=found.by_problem)}: {pair_words(keys[k])}",
    )  # fmt: skip
    view_filters.keep("case", key, worst)
    pair = keys[str(key)]
    left, right = st.columns([1.6, 1], gap="medium")
    with left:
        names = [r.variant for r in (pair.before, pair.after)]
        st.plotly_chart(
            plots.shares_by_time(found, pair),
            key="shares",
            config=view_filters.CHART,
            alt=samples_words(names, found.headline),
        )
    with right:
        _in_words(found, pair)


def _in_words(found: Comparison, pair: Pair) -> None:
    with st.container(border=True, key="one_pair"):
        st.markdown(f"**{plain(problem_words(pair.problem))}**  \n{plain(pair_words(pair))}")
        floor = "" if pair.floor is None else f"Noise floor: ±{units.percent(pair.floor)}."
        if pair.word != "not comparable":  # whose words hold the reason
            st.markdown(f"{plain(sentence_case(describe_pair_reason(pair.reason)))}. {plain(floor)}")
        for side, run, result in (("A", found.a, pair.before), ("B", found.b, pair.after)):
            figure = figure_of(result.timing, found.headline)
            time = f"no correct {found.headline} time" if figure is None else format_time(figure)
            st.markdown(
                f"{side}: **{plain(variant_words(result.variant))}** {plain(time)}  \n"
                f":small[:gray[{plain(describe_quality_of(result, found.headline, run.method.clock))}]]"
            )
            site.run_link(f"Open run {side}", run.id)


def _table(found: Comparison) -> None:
    st.markdown("##### Every case")
    chosen = table.show(
        pair_columns(found, View.WIDE), found.pairs, key="pairs", on_select="rerun", selection_mode="single-row",
        alt="Every pair with its verdict, change, interval and both times",
    )  # fmt: skip
    key = found.pairs[chosen[0]].key if chosen and chosen[0] < len(found.pairs) else None
    view_filters.follow({"seen_row": key}, "compare_pending")


def _only(found: Comparison) -> None:
    for line in only_words(found):
        st.caption(plain(line))


def _rule(found: Comparison) -> None:
    with st.expander("How the verdict is found", icon=":material/rule:"):
        st.markdown(words.RULE)
        counts = found.counts
        st.markdown("\n".join(f"- {words.meaning_words(word)} Here: {counts[word]}." for word in WORDS))
