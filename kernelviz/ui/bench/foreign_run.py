"""A run of which another tool took the times: what its file says, drawn and listed, and nothing that it does not say."""

from __future__ import annotations

import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core.run import Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.summary import rows
from kernelviz.tables.cases import cases
from kernelviz.tables.column import View
from kernelviz.tables.other_times import other_times_columns
from kernelviz.text.charts import other_times_words
from kernelviz.ui.shared import share, table, view_filters
from kernelviz.ui.shared.text import plain, when


def show(bench: Bench, run: Run) -> None:
    """Everything about the run."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heading"):
        st.markdown(f"#### {plain(run.title or run.plan.op)}", width="content")
        st.caption(plain(f"{run.environment.device.name} · {when(run.created_at)}"), width="content")
        share.button(bench, run.id, key="share")
    if run.note:
        st.text(run.note)
    st.info(foreign_times.NOT_OURS, icon=":material/info:")
    names = foreign_times.names(run)
    chosen = names[0]
    if len(names) > 1:
        chosen = (
            st.segmented_control(
                "Time", names, default=chosen, key="other_time", required=True, label_visibility="collapsed"
            )
            or chosen
        )
    st.plotly_chart(
        plots.other_times_by_size(run, chosen),
        key="other_times",
        config=view_filters.CHART,
        alt=other_times_words(chosen),
    )
    st.caption(plain(f"{chosen}: {foreign_times.methods(run)[chosen]}"))
    of = cases(run, rows(run, ()))
    table.show(other_times_columns(of, View.WIDE), of, key="other_table", alt="Every time of every case")
