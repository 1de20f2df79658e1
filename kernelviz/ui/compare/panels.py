"""The panels of the page Compare. `pages/compare.py` puts them in reading order."""

import streamlit as st

from kernelviz import plots
from kernelviz.core import units
from kernelviz.metrics.comparability import one_run
from kernelviz.metrics.comparison import WORDS, Comparison, Pair
from kernelviz.metrics.summary import figure_of
from kernelviz.metrics.sweep import problem_words, telling_axes
from kernelviz.plots.comparison import describe_comparison
from kernelviz.plots.samples import describe_samples
from kernelviz.plots.tiles import Tile
from kernelviz.plots.variant_styles import format_variant
from kernelviz.tables.column import View
from kernelviz.tables.comparison import pair_columns
from kernelviz.text.comparison import (
    describe_noise,
    describe_pair,
    describe_refusals,
    describe_unpaired,
    format_case,
    format_change,
    mean_basis,
    noisy,
)
from kernelviz.text.differences import differences
from kernelviz.text.quality import describe_quality_of
from kernelviz.text.results import format_time
from kernelviz.text.text import sentence_case
from kernelviz.text.verdicts import describe_verdict_reason
from kernelviz.ui.compare import text
from kernelviz.ui.shared import site, table, tiles, view_filters
from kernelviz.ui.shared.text import plain

MOST_BARS = 24
_WORST = f"the worst {MOST_BARS}"


_CSS = """
<style>
.st-key-differs li { margin-bottom: 0.1rem; }
.st-key-one_pair p { font-size: 0.93rem; }
/* Names of runs are long: on a phone each gets its own line. */
@media (max-width: 640px) { :is(.st-key-a, .st-key-b) { min-width: 100%; } }
</style>
"""


def title() -> None:
    """Title, and how to read the page."""
    st.html(_CSS)
    st.markdown("#### Compare")
    st.markdown(text.INTRO)


def no_common_case(comparison: Comparison) -> None:
    """Says what each side holds, and what to choose instead."""
    a, b = (f"{r.plan.op} {r.plan.problems[0].dtype}" for r in (comparison.a, comparison.b))
    st.info(plain(text.NO_PAIRS.format(a=a, b=b)), icon=":material/link_off:")


def verdict_tiles(comparison: Comparison) -> None:
    """How many cases are slower, faster, the same or unclear, and the mean ratio of the times."""
    counts, axes = comparison.counts, telling_axes([p.problem for p in comparison.pairs])
    judged = comparison.judged

    def change_at(pair: Pair | None) -> str:
        if pair is None or pair.ratio is None:
            return "no case"
        return f"{format_change(pair.ratio.estimate)}, {format_case(pair, axes, by_problem=comparison.by_problem)}"

    worst = next((p for p in judged if p.word == "slower"), None)
    best = next((p for p in reversed(judged) if p.word == "faster"), None)
    mean = comparison.mean_ratio
    identical = sum(p.word == "same code" for p in comparison.pairs)
    tiles.draw(
        (
            Tile(
                "▼ Slower", f"{counts['slower']} of {len(judged)} slower", f"worst: {change_at(worst)}" if worst else ""
            ),
            Tile("▲ Faster", f"{counts['faster']} of {len(judged)} faster", f"best: {change_at(best)}" if best else ""),
            Tile(
                "= Same, ? unclear",
                f"{counts['same']} same, {counts['unclear']} unclear",
                f"also {identical} with identical code, {counts['not comparable']} not comparable",
            ),
            Tile(
                "Mean time, B relative to A",
                "no verdict" if mean is None else str(format_change(mean)),
                str(mean_basis(comparison)),
            ),
        )
    )


def cases_without_time_in_b(comparison: Comparison) -> None:
    """The cases that had a correct time in A and have none in B."""
    broken = [p for p in comparison.pairs if p.broken]
    if not broken:
        return
    axes = telling_axes([p.problem for p in comparison.pairs])
    names = "; ".join(str(format_case(p, axes, by_problem=comparison.by_problem)) for p in broken[:6])
    more = f" and {len(broken) - 6} more" if len(broken) > 6 else ""
    st.error(
        f"**{len(broken)} case{'s' if len(broken) != 1 else ''} had a correct time in A but not in B**: {plain(names)}{more}.",
        icon=":material/error:",
    )


def cases_without_verdict(comparison: Comparison) -> None:
    """Why cases are not comparable: a warning if no case has a verdict, else a remark."""
    reasons = str(describe_refusals(comparison))
    if reasons and not comparison.judged:
        st.warning(plain(reasons), icon=":material/block:")
    elif reasons:
        st.caption(plain(reasons))


def measurement_noise(comparison: Comparison) -> None:
    """How much the times of the two runs vary without a change of code."""
    st.markdown("##### Measurement noise")
    if noisy(comparison):
        st.warning(plain(describe_noise(comparison)), icon=":material/waves:")
    else:
        st.markdown(plain(describe_noise(comparison)))


def environment_differences(comparison: Comparison) -> None:
    """What differs between the runs except the code: device, driver, versions, method."""
    st.markdown("##### Environment differences")
    entries = differences(comparison)
    if not entries:
        st.markdown(text.ONE_RUN if one_run(comparison.a, comparison.b) else text.ALIKE)
        return
    with st.container(key="differs"):
        st.markdown("\n".join(f"- :red[**≠ {plain(d.what)}**: {plain(d.values)}]" for d in entries))


def verdict_bars(comparison: Comparison) -> None:
    """A bar for each case, the worst first. A click chooses the case that `case_box` shows."""
    many = len(comparison.pairs) > MOST_BARS
    every = f"all {len(comparison.pairs)}"
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
    figure = plots.ratio_by_case(comparison, most=MOST_BARS if many and rows == _WORST else None)
    event = st.plotly_chart(
        figure,
        key="ratios",
        config=view_filters.CHART,
        alt=describe_comparison(comparison),
        on_select="rerun",
        selection_mode="points",
    )
    points = event.selection.points if event is not None else []
    view_filters.follow({"seen_bar": str(points[-1].get("customdata")) if points else None}, "compare_pending")


def case_box(comparison: Comparison) -> Pair:
    """The case to look at: the worst one until somebody chooses another, here or by a click on a bar or a row."""
    keys = {p.key: p for p in comparison.pairs}
    axes = telling_axes([p.problem for p in comparison.pairs])
    pending = st.session_state.pop("compare_pending", None)
    if pending in keys:
        st.session_state["case"] = pending
    if st.session_state.get("case") not in (None, *keys):
        del st.session_state["case"]
    worst = next((p.key for p in comparison.pairs if p.ratio is not None), comparison.pairs[0].key)
    view_filters.seed("case", list(keys), worst)
    key = st.selectbox(
        "Case", list(keys), key="case", label_visibility="collapsed",
        format_func=lambda k: f"{format_case(keys[k], axes, by_problem=comparison.by_problem)}: {describe_pair(keys[k])}",
    )  # fmt: skip
    view_filters.keep("case", key, worst)
    return keys[str(key)]


def samples_of_case(comparison: Comparison, pair: Pair) -> None:
    """The distribution of the samples of both sides."""
    names = [r.variant for r in (pair.before, pair.after)]
    st.plotly_chart(
        plots.shares_by_time(comparison, pair),
        key="shares",
        config=view_filters.CHART,
        alt=describe_samples(names, comparison.headline),
    )


def verdict_of_case(comparison: Comparison, pair: Pair) -> None:
    """The verdict of one case with its reason, and both times with their measurement quality."""
    with st.container(border=True, key="one_pair"):
        st.markdown(f"**{plain(problem_words(pair.problem))}**  \n{plain(describe_pair(pair))}")
        floor = "" if pair.floor is None else f"Noise threshold: ±{units.percent(pair.floor)}."
        if pair.word != "not comparable":  # there the verdict itself contains the reason
            st.markdown(f"{plain(sentence_case(describe_verdict_reason(pair.reason)))}. {plain(floor)}")
        for side, run, result in (("A", comparison.a, pair.before), ("B", comparison.b, pair.after)):
            figure = figure_of(result.timing, comparison.headline)
            time = f"no correct {comparison.headline} time" if figure is None else format_time(figure)
            st.markdown(
                f"{side}: **{plain(format_variant(result.variant))}** {plain(time)}  \n"
                f":small[:gray[{plain(describe_quality_of(result, comparison.headline, run.method.clock))}]]"
            )
            site.run_link(f"Open run {side}", run.id)


def case_table(comparison: Comparison) -> None:
    """Every pair in numbers. A click on a row chooses the case that `case_box` shows."""
    chosen = table.show(
        pair_columns(comparison, View.WIDE), comparison.pairs, key="pairs", on_select="rerun", selection_mode="single-row",
        alt="Every pair with its verdict, change, interval and both times",
    )  # fmt: skip
    key = comparison.pairs[chosen[0]].key if chosen and chosen[0] < len(comparison.pairs) else None
    view_filters.follow({"seen_row": key}, "compare_pending")


def cases_in_one_run_only(comparison: Comparison) -> None:
    """How many cases only one of the runs has."""
    for line in describe_unpaired(comparison):
        st.caption(plain(line))


def verdict_rule(comparison: Comparison) -> None:
    """The rule behind the verdicts, and how many cases have each."""
    with st.expander("How the verdict is determined", icon=":material/rule:"):
        st.markdown(text.RULE)
        counts = comparison.counts
        st.markdown("\n".join(f"- {text.describe_verdict(verdict)} Here: {counts[verdict]}." for verdict in WORDS))
