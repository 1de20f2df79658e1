"""How the machine code of the two sides of one case differs. It is read only when somebody asks for it."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.bench.code_differences import code_difference
from kernelviz.metrics.comparison import Comparison, Pair
from kernelviz.tables.code_differences import CODE_DIFFERENCES
from kernelviz.text.code_differences import (
    UNKNOWN_CODE,
    describe_compilers,
    describe_fact_differences,
)
from kernelviz.ui.shared import table
from kernelviz.ui.shared.text import plain


def machine_code_of_case(bench: Bench, comparison: Comparison, pair: Pair) -> None:
    """A switch, and the facts that differ when it is on."""
    if not st.toggle(
        "Compare the machine code", key="machine_code", help="Which facts about the kernels' machine code differ."
    ):
        return
    difference = code_difference(bench.history.code_facts, comparison, pair)
    with st.container(border=True, key="code_of_pair"):
        if difference.unknown:
            st.markdown(plain(f"Unknown: {UNKNOWN_CODE[difference.unknown]}."))
        for number, kernel in enumerate(difference.kernels):
            st.markdown(f"**{plain(describe_compilers(kernel.a, kernel.b))}**")
            if kernel.same_file:
                st.markdown("Both sides run the same file.")
                continue
            st.markdown(plain(f"{describe_fact_differences(kernel.differences)}."))
            if kernel.differences:
                alt = "Facts about the machine code that differ"
                table.show(CODE_DIFFERENCES, kernel.differences, key=f"code_differences_{number}", alt=alt)
