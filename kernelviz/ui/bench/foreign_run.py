"""A run of which another tool took the times: what its file says, drawn and listed, and nothing that it does not say."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.metrics import foreign_times
from kernelviz.text.cells import time_unit
from kernelviz.text.charts import other_times_words
from kernelviz.text.failures import STAGES, describe_failure
from kernelviz.ui.shared import share, view_filters
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
    frame, columns = _frame(run)
    st.dataframe(frame, hide_index=True, key="other_table", column_config=columns)


def _frame(run: Run) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row a case: sizes, variant, each time, how it was taken, and why a case has none."""
    names = foreign_times.names(run)
    scale, unit = time_unit([f.estimate for r in run.results for f in foreign_times.of_case(r).values()])
    axes = list(run.plan.problems[0].sizes)
    lines = []
    for result in run.results:
        times = foreign_times.of_case(result)
        failed = result.outcome if isinstance(result.outcome, Failure) else None
        line: dict[str, object] = {f"size {i}": result.problem.sizes.get(axis) for i, axis in enumerate(axes)}
        line["variant"] = result.variant
        line |= {f"time {i}": times[n].estimate / scale if n in times else None for i, n in enumerate(names)}
        line["result"] = f"✕ {STAGES[failed.stage]}: {describe_failure(failed)}" if failed else "not checked"
        line["how"] = "; ".join(f"{name}: {figure.method}" for name, figure in times.items())
        lines.append(line)
    columns: dict[str, Any] = {
        f"size {i}": st.column_config.NumberColumn(plain(axis), format="%d") for i, axis in enumerate(axes)
    }
    columns |= {
        f"time {i}": st.column_config.NumberColumn(plain(f"{name}, {unit}"), format="%.4g")
        for i, name in enumerate(names)
    }
    return pd.DataFrame(lines), columns | {"how": st.column_config.TextColumn("how the times were taken")}
