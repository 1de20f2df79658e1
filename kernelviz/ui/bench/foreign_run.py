"""A run that another tool measured: a chart and a table of the times in its file."""

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core import Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.rows import rows
from kernelviz.tables.cases import cases
from kernelviz.tables.column import View, select
from kernelviz.tables.counters import COUNTERS, MOST_ROWS, counted_kernels
from kernelviz.tables.other_times import other_times_columns
from kernelviz.text import describe_foreign_times, describe_methods
from kernelviz.text.counters import describe_counting
from kernelviz.text.foreign_times import NOT_OURS
from kernelviz.ui.shared import charts, share, site, table, view_filters
from kernelviz.ui.shared.text import plain, when


def foreign_heading(bench: Bench, run: Run) -> None:
    """Title, device, share button, note, and what the file does not contain."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heading"):
        st.markdown(f"#### {plain(run.title or run.plan.op)}", width="content")
        st.caption(plain(f"{run.environment.device.name} · {when(run.created_at)}"), width="content")
        if run.plan.search is not None:
            site.autotune_link(run.id)
        share.fill(share.button("share"), bench, run.id)
    if run.note:
        st.text(run.note)
    st.info(NOT_OURS, icon=":material/info:")


def time_box(run: Run) -> str:
    """Which of the times of the file is drawn; the box appears if there are several."""
    names = foreign_times.names(run)
    if len(names) == 1:
        return names[0]
    if st.session_state.get("other_time") not in names:  # none yet, or that of another file
        st.session_state["other_time"] = names[0]
    chosen = view_filters.widget_with_value(
        st.segmented_control, "Time", names, key="other_time", label_visibility="collapsed"
    )
    return chosen or names[0]


def times_chart(run: Run, chosen: str) -> None:
    """One of the times by size, and how the tool measured it."""
    charts.draw(
        plots.other_times_by_size(run, chosen), key="other_times", alt=describe_foreign_times(chosen),
        picture=charts.picture_of([run], f"{chosen} by size"),
    )  # fmt: skip
    st.caption(plain(f"{chosen}: {describe_methods(run)[chosen]}"))


def times_table(run: Run) -> None:
    """Every case with every time."""
    results = cases(run, rows(run, ()))
    table.show(other_times_columns(results, View.WIDE), results, key="other_table", alt="All times of each case")


def counters_table(run: Run) -> None:
    """The hardware counters of a profiler's file, kernel by kernel, if it has any; only the first kernels of many."""
    counted = [result.hardware_counters for result in run.results[:MOST_ROWS] if result.hardware_counters is not None]
    listed = [row for counters in counted for row in counted_kernels(counters)]
    if not listed:
        return
    st.markdown("**Hardware counters**")
    table.show(
        select(COUNTERS, listed, View.WIDE), listed, key="foreign_counters", alt="Hardware counters of each kernel"
    )
    st.caption(plain(describe_counting(counted[0])))
