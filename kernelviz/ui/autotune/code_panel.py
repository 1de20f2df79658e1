"""Registers and spills of the configurations against their time, read from the machine code when somebody asks."""

from functools import partial

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core import LIVING, Run
from kernelviz.core.code_facts import CaseFacts
from kernelviz.metrics.configurations import ConfigurationSpace, with_code_facts
from kernelviz.text.configurations import describe_registers
from kernelviz.ui.shared import charts
from kernelviz.ui.shared.text import plain

_WAIT_S = 0.4
_ASK_EVERY = "0.5s"


def registers(bench: Bench, run: Run, space: ConfigurationSpace) -> None:
    """The chart and its sentence; while the machine code is read, the registers that the driver allocated."""
    facts: tuple[CaseFacts, ...] = ()
    if run.status in LIVING:
        st.caption(
            "The machine code is read when the tuning has ended; until then, registers are those that the driver allocates."
        )
    else:
        reading = bench.history.code_facts.reading(run)
        if reading.wait(_WAIT_S):
            facts = reading.facts
        else:

            @st.fragment(run_every=_ASK_EVERY, key="autotune_reading_code")
            def ask_again() -> None:
                if reading.ended:
                    st.rerun()
                st.caption("Reading the machine code of the configurations. 100 of them take about five seconds …")

            ask_again()
    known = with_code_facts(space, facts)
    st.markdown(f"**{plain(describe_registers(known))}**")
    charts.draw(
        partial(plots.time_by_registers, run, facts), key="autotune_registers",
        picture=charts.picture_of([run], "time by registers"),
        alt=f"Time of each configuration by its registers per thread. {describe_registers(known)}",
    )  # fmt: skip
    st.caption(
        "Spills are loads from and stores to local memory in the machine code: spilled registers, and arrays that do not "
        "fit into "
        "registers. Many registers let fewer warps reside on a multiprocessor."
    )
