"""The panels of the page Code about two cases: the measured difference, what changed, and the facts of both."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench, compared_code
from kernelviz.bench.compared_code import MeasuredDifference
from kernelviz.bench.comparison import compare_stored
from kernelviz.core import Run
from kernelviz.core.code_facts import CaseFacts, KernelOfCase
from kernelviz.core.code_listing import ListingKind
from kernelviz.metrics.comparison import Comparison
from kernelviz.metrics.figures import figure_of
from kernelviz.tables.code_changes import CODE_CHANGES
from kernelviz.tables.code_facts import KernelRow
from kernelviz.tables.code_sides import CODE_SIDES, side_facts
from kernelviz.text import describe_pair, format_time, format_variant
from kernelviz.text.code_changes import MOST, describe_cause, describe_changes, describe_missing_sides
from kernelviz.text.code_listings import KIND_NAMES
from kernelviz.text.code_mechanisms import describe_favour, describe_mechanism
from kernelviz.text.comparison import describe_verdict_of
from kernelviz.text.results import format_configuration
from kernelviz.ui.code.choice import Side
from kernelviz.ui.code.reading import CodeToShow
from kernelviz.ui.shared import site, table
from kernelviz.ui.shared.text import plain


def measured(bench: Bench, first: Side, second: Side) -> MeasuredDifference | None:
    """The measured difference at one problem, as the page Compare has it."""

    def compare(a: Run, b: Run, *, variant_a: str, variant_b: str) -> Comparison:
        return compare_stored(bench, a.id, b.id, variant_a=variant_a, variant_b=variant_b)

    return compared_code.measured_difference(compare, first.case, second.case)


def common_kinds(first: Side, second: Side) -> tuple[ListingKind, ...]:
    """The kinds of text that both kernels have."""
    return tuple(kind for kind in first.kinds if kind in second.kinds)


def nothing_in_common(first: Side, second: Side) -> None:
    """Says that the two kernels have no kind of text in common."""
    names = [", ".join(KIND_NAMES[kind] for kind in side.kinds) for side in (first, second)]
    st.info(
        f"The two kernels have no kind of text in common: A has {names[0]}, B has {names[1]}.",
        icon=":material/difference:",
    )


def sentence(content: CodeToShow) -> None:
    """How many lines differ, and what was left out."""
    if text := str(content.sentence):
        st.markdown(plain(text))


def measured_difference(first: Side, second: Side, difference: MeasuredDifference | None) -> None:
    """Both times, and the verdict of the page Compare."""
    with st.container(border=True, key="code_measured"):
        lines = ["**Measured: device time, cold caches**"]
        for name, side in (("A", first), ("B", second)):
            figure = figure_of(side.result.timing, "cold")
            time = "no correct cold time" if figure is None else format_time(figure)
            configured = str(format_configuration(side.result))
            with_values = f" · {plain(configured)}" if configured else ""
            lines.append(f"{name}: **{plain(format_variant(side.variant))}** {plain(time)}{with_values}")
        if difference is None:
            same = first.problem.key == second.problem.key
            why = "Both sides are the same case." if same else "The sizes differ, so the times are not compared."
            st.markdown(_lines([*lines, why]))
            return
        lines.append(f"B against A: **{plain(describe_pair(difference.pair))}**")
        if difference.pair.kind != "not comparable":  # there the verdict itself contains the reason
            lines.append(plain(describe_verdict_of(difference.pair)))
        st.markdown(_lines(lines))
        with st.container(horizontal=True):
            st.page_link(
                site.page("compare"), label="Open in Compare", icon=":material/compare_arrows:",
                query_params={
                    "a": first.run.id, "b": second.run.id, "variant_a": first.variant, "variant_b": second.variant,
                    "case": difference.pair.key,
                },
            )  # fmt: skip


def _lines(lines: Sequence[str]) -> str:
    """Lines of Markdown below each other, in one paragraph."""
    return "  \n".join(lines)


def what_changed(a: CaseFacts | None, b: CaseFacts | None, difference: MeasuredDifference | None) -> None:
    """One sentence about what changed in the machine code, the likeliest cause of the measured difference first, and the list."""
    if a is None or b is None:
        return
    changes = compared_code.changes_of(a, b, difference)
    if difference is not None:
        how = describe_favour if changes.faster == "a" else describe_mechanism
        mechanism = how(changes.cause) if changes.cause is not None else None
        st.markdown(f"**{plain(describe_cause(changes))}** {plain(mechanism or '')}")
    if changes.changes:
        st.markdown(plain(f"What changed from A to B: {describe_changes(changes)}."))
    if changes.known or changes.changes:
        for line in describe_missing_sides(changes):
            st.caption(plain(line))
    if len(changes.changes) > MOST:
        with st.expander(f"All {len(changes.changes)} changes, the likeliest cause first"):
            table.show_wrapped(
                CODE_CHANGES, changes.changes, key="code_changes", alt="What has changed in the machine code"
            )


def facts_of_both(
    cases: tuple[CaseFacts | None, CaseFacts | None], kernels: tuple[KernelOfCase | None, KernelOfCase | None]
) -> None:
    """The facts of both kernels, with a sign beside those that differ."""
    rows = [
        KernelRow(case, kernel) if case is not None and kernel is not None else None
        for case, kernel in zip(cases, kernels, strict=True)
    ]
    facts = side_facts(rows[0], rows[1])
    if not facts:
        return
    st.markdown("##### Facts of both kernels")
    differing = sum(fact.differs is True for fact in facts)
    table.show_wrapped(
        CODE_SIDES, facts, key="code_facts_of_both", alt=f"{len(facts)} facts, of which {differing} differ"
    )
