"""Measuring on the page Fusion: the buttons that start a run, and its progress."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench, RunSummary
from kernelviz.bench import fusion as use_case
from kernelviz.core import LIVING, Device
from kernelviz.core.fusion import FusionFamily
from kernelviz.ui.fusion import choice
from kernelviz.ui.shared import callbacks, live_progress, session, site, view_filters
from kernelviz.ui.shared.text import plain

_KIND = "fusion"


def open_started_run(bench: Bench) -> None:
    """Show the run that a button of this page has started, if any."""
    actions = callbacks.actions()
    started = actions.activities.pop(_KIND, None)
    if started is not None:
        op, _, run_id = started.partition(" ")
        choice.choose_op(bench, op)
        view_filters.write(choice.RUN, run_id)
        st.session_state[f"fusion_run_{op}"] = run_id


def button(bench: Bench, op: str, device: Device, *, key: str, label: str) -> None:
    """A button that measures the fusion of an op on a device."""
    callbacks.button(
        label, partial(_start, bench, op, device.id, callbacks.actions(), session.owner()), key=key, about=device.id,
        icon=":material/play_arrow:", disabled=not device.usable,
        help=plain(
            f"Measures the compositions and the fused variants of {op} on {device.name}, cold device times only, over a sweep of "
            f"sizes. In a terminal: kernelviz fusion --measure {op}"
        ),
    )  # fmt: skip


def _start(bench: Bench, op: str, device_id: str, actions: callbacks.Actions, owner: str) -> None:
    actions.activities[_KIND] = f"{op} {use_case.start(bench, op, device_id, owner=owner)}"


def card_progress(bench: Bench, family: FusionFamily) -> bool:
    """The progress of a run of a family that is being measured, on its card; returns whether there is one."""
    runs = (run for op in use_case.fused_ops(bench)[family] for run in use_case.offered(bench, op.name))
    living = next((run for run in runs if run.status in LIVING), None)
    if living is None:
        return False
    st.progress(
        living.done / max(living.cases, 1),
        text=plain(f"Measuring {living.op}: {living.done} of {living.cases} cases done"),
    )
    return True


def controls(bench: Bench, chosen: choice.Selection, device: Device, run: RunSummary | None) -> None:
    """The button that measures the chosen op here, or the progress of the run that is measured."""
    if run is not None and not run.shipped:
        progress = live_progress.progress_of(bench, run.id)
        if progress is not None and progress.status in LIVING:
            live_progress.running_activity(
                bench, run.id, progress, f"Measuring {chosen.op.name} on {run.device}. Results appear as they arrive.",
                key="fusion", box="fusion_progress",
            )  # fmt: skip
            return
        if run.status in ("cancelled", "interrupted"):
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.warning(
                    f"This measurement was {run.status}: {run.done} of {run.cases} cases have a result. "
                    "Resume measures the rest.",
                    icon=":material/pause_circle:",
                )
                callbacks.button(
                    "Resume", partial(bench.resume, run.id, owner=session.owner()), key="resume_fusion", about=run.id,
                    icon=":material/play_arrow:",
                )  # fmt: skip
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="fusion_actions"):
        if use_case.can_run(bench, chosen.op.name, device.id):
            button(bench, chosen.op.name, device, key="measure_fusion", label=f"Measure on {device.name}")
        if run is not None:
            site.run_link("Open this run: samples, code, export, snapshot", run.id)
