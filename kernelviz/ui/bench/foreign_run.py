"""A run that another tool measured: a chart and a table of the times in its file."""

from __future__ import annotations

from typing import Any

import pandas as pd
import streamlit as st

from kernelviz import plots
from kernelviz.bench import Bench
from kernelviz.core.result import Failure
from kernelviz.core.run import Run
from kernelviz.metrics import foreign_times
from kernelviz.metrics.cells import time_unit
from kernelviz.metrics.summary import STAGE_WORDS
from kernelviz.text.charts import other_times_words
from kernelviz.ui.shared import share, view_filters
from kernelviz.ui.shared.text import plain, when


def foreign_heading(bench: Bench, run: Run) -> None:
    """Title, device, share button, note, and what the file does not contain."""
    with st.container(horizontal=True, vertical_alignment="bottom", gap="small", key="heading"):
        st.markdown(f"#### {plain(run.title or run.plan.op)}", width="content")
        st.caption(plain(f"{run.environment.device.name} · {when(run.created_at)}"), width="content")
        share.button(bench, run.id, key="share")
    if run.note:
        st.text(run.note)
    st.info(foreign_times.NOT_OURS, icon=":material/info:")


def time_box(run: Run) -> str:
    """Which of the times of the file is drawn; the box appears if there are several."""
    names = foreign_times.names(run)
    chosen = names[0]
    if len(names) > 1:
        chosen = (
            st.segmented_control(
                "Time", names, default=chosen, key="other_time", required=True, label_visibility="collapsed"
            )
            or chosen
        )
    return chosen


def times_chart(run: Run, chosen: str) -> None:
    """One of the times by size, and how the tool measured it."""
    st.plotly_chart(
        plots.other_times_by_size(run, chosen),
        key="other_times",
        config=view_filters.CHART,
        alt=other_times_words(chosen),
    )
    st.caption(plain(f"{chosen}: {foreign_times.methods(run)[chosen]}"))


def times_table(run: Run) -> None:
    """Every case with every time."""
    frame, columns = _frame(run)
    st.dataframe(frame, hide_index=True, key="other_table", column_config=columns)


def _frame(run: Run) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A row for each case: sizes, variant, each time, how it was measured, and why there is none."""
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
        line["result"] = f"✕ {STAGE_WORDS[failed.stage]}: {failed.message}" if failed else "not checked"
        line["how"] = "; ".join(f"{name}: {figure.method}" for name, figure in times.items())
        lines.append(line)
    columns: dict[str, Any] = {
        f"size {i}": st.column_config.NumberColumn(plain(axis), format="%d") for i, axis in enumerate(axes)
    }
    columns |= {
        f"time {i}": st.column_config.NumberColumn(plain(f"{name}, {unit}"), format="%.4g")
        for i, name in enumerate(names)
    }
    return pd.DataFrame(lines), columns | {"how": st.column_config.TextColumn("how the times were measured")}
