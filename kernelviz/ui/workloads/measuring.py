"""A run under way: what happens now, cancel; and resume for one that was cancelled or interrupted."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from kernelviz.bench import Bench
from kernelviz.bench.workload_live import WorkloadState
from kernelviz.core import LIVING, UnknownRun
from kernelviz.core.workload import WorkloadRun
from kernelviz.text.workloads import describe_progress
from kernelviz.ui.shared import callbacks, session
from kernelviz.ui.shared.text import plain
from kernelviz.ui.workloads import choice
from kernelviz.ui.workloads.form import STARTED

_LOOK_S = 0.5
"""While a run is measured, the page looks this often where it is. A case takes seconds."""


def open_started_run() -> None:
    """Show the run that this session has just started."""
    run_id = callbacks.actions().activities.pop(STARTED, None)
    if run_id is not None:
        choice.choose_run(run_id)


def controls(bench: Bench, run: WorkloadRun, progress: DeltaGenerator) -> None:
    """The progress of a run that is measured, inside of `progress`, or here how it ended if it did not finish."""
    state = _state(bench, run.id)
    if state is None:
        return
    if state.status in LIVING:
        with progress:
            _running(bench, run)
    elif state.status in ("cancelled", "interrupted"):
        _stopped(bench, run, state)


def _state(bench: Bench, run_id: str) -> WorkloadState | None:
    try:
        return bench.workloads.progress(run_id)
    except UnknownRun:
        return None


def _running(bench: Bench, run: WorkloadRun) -> None:
    with st.container(border=True, key="measuring_workload"):
        _watch(bench, run)
        callbacks.button(
            "Cancel", partial(bench.workloads.cancel, run.id), key="cancel_workload", about=run.id,
            icon=":material/stop_circle:",
            help="Ends the process that measures at once. Results so far stay; Resume goes on where it ended.",
        )  # fmt: skip


@st.fragment(run_every=_LOOK_S)
def _watch(bench: Bench, run: WorkloadRun) -> None:
    """The bar and what happens now; the page is redrawn when a case is done or the run has ended."""
    state = _state(bench, run.id)
    if state is None or state.status not in LIVING:
        st.rerun()
    failed = f", {state.failed} failed" if state.failed else ""
    now = str(describe_progress(state.now, run)) or state.message or state.status
    st.progress(
        state.done / max(state.total, 1), text=plain(f"{state.done} of {state.total} cases done{failed} · {now}")
    )
    seen = (run.id, state.done)
    if st.session_state.get("workload_seen") not in (None, seen):
        st.session_state["workload_seen"] = seen
        st.rerun()
    st.session_state["workload_seen"] = seen


def _stopped(bench: Bench, run: WorkloadRun, state: WorkloadState) -> None:
    left = state.total - state.done
    reason = f" {plain(state.message)}." if state.message else ""
    with st.container(border=True, key="stopped_workload"):
        st.markdown(
            f":material/pause_circle: This run was **{state.status}**; {left} of {state.total} cases are left.{reason}"
        )
        if not bench.workloads.summary(run.id).shipped:
            callbacks.button(
                "Resume", partial(bench.workloads.resume, run.id, owner=session.owner()), key="resume_workload", about=run.id,
                icon=":material/play_arrow:", help="Measures the cases that have no result yet.",
            )  # fmt: skip
