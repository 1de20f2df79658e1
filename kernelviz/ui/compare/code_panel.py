"""How the machine code of the two sides of one case differs. It is read only when somebody asks for it."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.code_changes import changes_of_pair
from kernelviz.bench.code_differences import code_difference
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.tables.code_changes import CODE_CHANGES
from kernelviz.tables.code_differences import CODE_DIFFERENCES
from kernelviz.text.code_changes import describe_cause, describe_missing_sides
from kernelviz.text.code_differences import describe_compilers
from kernelviz.text.code_mechanisms import describe_favour, describe_mechanism
from kernelviz.ui.shared import site, table
from kernelviz.ui.shared.text import plain


def machine_code_of_case(bench: Bench, comparison: Comparison, pair: Pair) -> None:
    """A switch, and what has changed in the machine code when it is on."""
    if not st.toggle(
        "Compare the machine code",
        key="machine_code",
        help="What has changed in the machine code of the kernels, the likeliest cause of the difference first.",
    ):
        return
    facts = bench.history.code_facts
    changes = changes_of_pair(facts, comparison, pair)
    with st.container(border=True, key="code_of_pair"):
        how = describe_favour if changes.faster == "a" else describe_mechanism
        mechanism = how(changes.cause) if changes.cause is not None else None
        st.markdown(f"**{plain(describe_cause(changes))}** {plain(mechanism or '')}")
        if changes.known or changes.changes:
            for line in describe_missing_sides(changes):
                st.caption(plain(line))
        if changes.changes:
            table.show_wrapped(
                CODE_CHANGES, changes.changes, key="code_changes", alt="What has changed in the machine code"
            )
        if pair.before.code and pair.after.code:
            site.code_link(
                "Compare source, PTX and SASS line by line", comparison.a.id, pair.before.variant, pair.before.problem.key,
                other=(comparison.b.id, pair.after.variant, pair.after.problem.key),
            )  # fmt: skip
        for number, kernel in enumerate(code_difference(facts, comparison, pair).kernels):
            if kernel.differences:
                with st.expander(plain(f"All counts that differ: {describe_compilers(kernel.a, kernel.b)}")):
                    alt = "Facts about the machine code that differ"
                    table.show(CODE_DIFFERENCES, kernel.differences, key=f"code_differences_{number}", alt=alt)
