"""The tab Checklist: six points of each variant at one size, ticked from facts, and the rule behind each."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench.checklist import of_rows
from kernelviz.core import Problem, Roof, Run
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.rows import Row
from kernelviz.tables.checklist import CHECKLIST
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.checklist import RULES, describe_check, describe_count
from kernelviz.ui.shared import table, view_filters
from kernelviz.ui.shared.text import plain


@st.fragment
def points_at_size(
    run: Run, whole: Run, results: Sequence[Row], roofs: Sequence[Roof], problem: Problem, headline: Headline
) -> None:
    """The points of all variants at the chosen size, and those of one variant with their rules. `whole`: the stored
    run."""
    cases = of_rows(run, [row for row in results if row.result.problem == problem], roofs, headline)
    if not cases:
        st.caption("No case of this size has a result yet.")
        return
    st.markdown(
        f"**Checklist at {plain(format_sizes(problem))}** · Each point is passed (✓), not passed (✕) or unknown (?), from facts "
        "of the case. A point says where to look, not that a kernel is slow."
    )
    table.show(
        select_with_sizes(CHECKLIST, cases, View.WIDE),
        cases,
        key="checklist",
        alt=f"Checklist of {len(cases)} variants",
    )
    by_variant = {case.result.variant: case for case in cases}
    variant = view_filters.choose(
        st.selectbox, "Points of a variant", list(by_variant), next(iter(by_variant)), key="checks_of", width=320,
        format_func=format_variant,
    )  # fmt: skip
    case = by_variant[variant]
    st.markdown(f"**{plain(format_variant(variant))}**: {plain(describe_count(case.checks))}")
    lines = [
        f"- {plain(describe_check(check))}  \n  :small[:gray[{plain(RULES[check.name])}]]" for check in case.checks
    ]
    st.markdown("\n".join(lines))
    st.caption(plain(f"In a terminal: kernelviz checklist {whole.id}. In Python: kernelviz.checklist({whole.id!r})."))
