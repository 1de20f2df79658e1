"""Where B is slower: why cases of B are slower than those of A, by what is known of both sides; and why one is faster."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.slowdown import explanation_of_pair, slowdowns
from kernelviz.core import LIVING
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.metrics.slowdown import Slowdown, is_slower
from kernelviz.metrics.slowdown_findings import Status
from kernelviz.metrics.speedup import is_faster
from kernelviz.metrics.sweep import varying_axes
from kernelviz.tables.slowdown import slowdown_columns
from kernelviz.text import describe_pair, format_case
from kernelviz.text.slowdown import (
    TOPIC_HELP,
    TOPIC_NAMES,
    describe_how,
    describe_likeliest,
    describe_slowdown,
    describe_topic,
    describe_topics_of,
    format_topic,
)
from kernelviz.ui.shared import table, view_filters
from kernelviz.ui.shared.text import plain

MOST_LISTED = 5
_WAIT_S = 0.4
"""A page waits this long for the machine code, so that it is drawn once where it is known or little."""
_ASK_EVERY = "0.5s"
_STYLES: dict[Status, str] = {"differs": "red", "same": "gray", "unknown": "orange"}
_STYLES_IF_FASTER: dict[Status, str] = {**_STYLES, "differs": "green"}
_HELP = (
    "Compares kernels, grid and fast paths, spills, occupancy, error, clock, and device and versions of both sides. What differs "
    "in favour of the faster side can be the reason; that it is, only a measurement of this one change proves."
)


def slower_cases(bench: Bench, comparison: Comparison) -> None:
    """All cases of which B is slower with their likeliest reasons, the worst first; nothing if there is none."""
    if not any(map(is_slower, comparison.pairs)):
        return
    st.markdown("##### Where B is slower", help=_HELP)
    if not _code_is_read(bench, comparison):
        return
    slow = slowdowns(bench.history.code_facts, comparison)
    with st.container(border=True, key="slower_cases"):
        st.markdown(f"**{plain(describe_topics_of(slow))}**")
        axes = varying_axes([p.problem for p in comparison.pairs])
        lines = []
        for one in slow[:MOST_LISTED]:
            case = plain(format_case(one.pair, axes, by_problem=comparison.by_problem))
            lines.append(f"- **{case}** ({plain(describe_pair(one.pair))}): {plain(describe_slowdown(one))}")
        st.markdown("\n".join(lines))
        if len(slow) > MOST_LISTED:
            with st.expander(f"All {len(slow)} cases, the worst first"):
                _all_cases(comparison, slow)


def _all_cases(comparison: Comparison, slow: tuple[Slowdown, ...]) -> None:
    """The table of slow cases. A click on a row chooses the case that the page shows below."""
    chosen = table.show(
        slowdown_columns(comparison), slow, key="slow_cases", on_select="rerun", selection_mode="single-row",
        alt="Every case of which B is slower, with its likeliest reasons",
    )  # fmt: skip
    key = slow[chosen[0]].pair.key if chosen and chosen[0] < len(slow) else None
    view_filters.follow({"seen_slow_row": key}, "compare_pending")


def why(bench: Bench, comparison: Comparison, pair: Pair) -> None:
    """All topics of one case with what is known of them, if B is slower or faster there."""
    if not (is_slower(pair) or is_faster(pair)):
        return
    if is_slower(pair):
        if not _is_read(bench, comparison):
            return  # the list of slow cases above says that it is being read
    elif not _code_is_read(bench, comparison, "reading_code_of_case"):
        return
    one = explanation_of_pair(bench.history.code_facts, comparison, pair)
    if one is None:
        return
    question = "Why is B faster here?" if one.faster == "b" else "Why is B slower here?"
    styles = _STYLES_IF_FASTER if one.faster == "b" else _STYLES
    with st.container(border=True, key="why"):
        st.markdown(f"**{question}** {plain(describe_likeliest(one))} {plain(describe_how(one))}", help=_HELP)
        st.markdown(
            "\n".join(
                f"- :{styles[facts.status]}[**{plain(format_topic(facts))}**]: {plain(describe_topic(facts, one.faster))}"
                for facts in one.topics
            ),
            help="  \n".join(f"**{name}**: {TOPIC_HELP[topic]}" for topic, name in TOPIC_NAMES.items()),
        )


def _code_is_read(bench: Bench, comparison: Comparison, key: str = "reading_code_of_runs") -> bool:
    """Whether the machine code of both runs is read, or will not be. If not, says so, and draws the page again later."""
    if _is_read(bench, comparison):
        return True

    @st.fragment(run_every=_ASK_EVERY, key=key)
    def ask_again() -> None:
        if _is_read(bench, comparison, wait_s=0.0):
            st.rerun()
        st.caption("Reading the machine code of the kernels. A run of 100 cases takes about five seconds …")

    ask_again()
    return False


def _is_read(bench: Bench, comparison: Comparison, wait_s: float = _WAIT_S) -> bool:
    runs = (comparison.a, comparison.b)
    if any(run.status in LIVING for run in runs):
        return True
    readings = [bench.history.code_facts.reading(run) for run in runs]
    return all(reading.wait(wait_s) for reading in readings)
