"""The tab Machine code: techniques, registers, occupancy and main loops of each case, read from its cubins on demand."""

from collections.abc import Sequence

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, Problem, Run, Timing
from kernelviz.core.code_facts import CaseFacts, ProofStatus
from kernelviz.formats import shipped_runs
from kernelviz.tables.code_facts import CODE_FACTS, kernel_rows
from kernelviz.tables.column import View, select_with_sizes
from kernelviz.text import format_sizes, format_variant
from kernelviz.text.code_facts import describe_launch, describe_missing_by_variant, describe_proof, format_proof
from kernelviz.text.machine_code import describe_kernel
from kernelviz.ui.shared import site, table, view_filters
from kernelviz.ui.shared.text import bullets, plain

_WAIT_S = 0.4
"""A page waits this long for the facts, so that it is drawn once where they are known or few."""
_ASK_EVERY = "0.5s"
_COLOURS: dict[ProofStatus, str] = {"proven": "green", "missing": "orange", "undeclared": "gray", "observed": "gray"}


def facts_of_cases(bench: Bench, run: Run, whole: Run, problem: Problem) -> None:
    """The table of all kernels, and the details of one case at the chosen size. `whole`: the run with all of its variants, which
    is analysed once for all selections."""
    if whole.status in LIVING:
        st.caption(
            "The machine code is read when the run has ended, because reading it uses the processor and would disturb the times."
        )
        return
    reading = bench.history.code_facts.reading(whole)
    if not reading.wait(_WAIT_S):

        @st.fragment(run_every=_ASK_EVERY, key="reading_code")
        def ask_again() -> None:
            if reading.ended:
                st.rerun()
            st.caption("Reading the machine code of the kernels. A run of 100 cases takes about five seconds …")

        ask_again()
        return
    cases = [
        case
        for case in reading.facts
        if case.result.variant in run.plan.variants
        and case.result.problem in run.plan.problems
        and (case.kernels or isinstance(case.result.outcome, Timing))
    ]
    rows = kernel_rows(cases)
    if rows:
        table.show(
            select_with_sizes(CODE_FACTS, rows, View.WIDE), rows, key="code_facts", alt="Machine code of each case"
        )
        _details(cases, problem, whole.id)
    missing = describe_missing_by_variant(cases, shipped=shipped_runs.is_shipped(whole.id))
    if missing:
        st.markdown(f"**Without machine code**\n{bullets(missing)}")
    elif not rows:
        st.caption("No case has a time yet, so there is no machine code to show.")
    st.caption(
        plain(f"In a terminal: kernelviz code {whole.id} --facts. In Python: kernelviz.code_facts({whole.id!r}).")
    )


def _details(cases: Sequence[CaseFacts], problem: Problem, run_id: str) -> None:
    """The badges and all facts of one variant at the chosen size."""
    by_variant = {c.result.variant: c for c in cases if c.kernels and c.result.problem == problem}
    if not by_variant:
        return
    variant = view_filters.choose(
        st.selectbox, plain(f"Details of a variant, at {format_sizes(problem)}"), list(by_variant), next(iter(by_variant)),
        key="code_of", width=320, format_func=format_variant,
    )  # fmt: skip
    case = by_variant[variant]
    site.code_link("Source, PTX and SASS of this variant", run_id, variant, problem.key)
    if case.proofs:
        badges = " ".join(f":{_COLOURS[p.status]}-badge[{plain(format_proof(p))}]" for p in case.proofs)
        st.markdown(badges, help=bullets(map(describe_proof, case.proofs)))
    for kernel in case.kernels:
        name, *lines = (*describe_kernel(kernel.facts), *describe_launch(kernel))
        st.markdown(f"**{plain(name)}**\n{bullets(lines)}")
