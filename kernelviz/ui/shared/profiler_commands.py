"""The commands that profile one call of a case, each to be copied by itself."""

import streamlit as st

from kernelviz.core.command import ProfilerCommands

HELP = (
    "`kernelviz launch` prepares the case and calls it between cudaProfilerStart and cudaProfilerStop, so that the profilers see "
    "only the call. ncu flushes the caches before each of its passes; it empties more than kernelviz does."
)


def draw(commands: ProfilerCommands) -> None:
    """Nsight Compute, Nsight Systems, and the command of kernelviz that reads counters."""
    by_label = {
        "Nsight Compute": commands.ncu,
        "Nsight Systems": commands.nsys,
        "Counters by kernelviz": commands.counters,
    }
    for label, command in by_label.items():
        st.caption(label)
        st.code(command, language=None, wrap_lines=True)
