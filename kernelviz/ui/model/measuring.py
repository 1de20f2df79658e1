"""Measuring on the page Model: all parts that have no result, and the layer as one module; with progress, cancel and resume."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench, model_runs
from kernelviz.bench.model import Layer, recorded_layers, recorded_sources
from kernelviz.core import LIVING, units
from kernelviz.text.workloads import describe_progress
from kernelviz.ui.shared import callbacks, live_progress, session, site
from kernelviz.ui.shared.text import plain

_EACH_S = 2.0
"""While runs wait, the page looks this often which of them is measured now."""


def controls(bench: Bench, layer: Layer) -> None:
    """The buttons, or the progress of what they started. For recorded results the way to own ones."""
    if layer.source.recorded:
        most = recorded_sources()[0]
        st.caption(
            "These results were recorded on another machine. To measure the layer here, choose this machine under Results. "
            f"Most of what was recorded of layers and of their ops is of {plain(most.device.name)} "
            f"({units.counted(recorded_layers(most), 'result')}){', so the page opens with it' if most == layer.source else ''}."
        )
        return
    state = model_runs.progress(bench, layer)
    truth = model_runs.living_truth(bench, layer)
    if state.current is not None:
        _running(bench, layer, state, state.current)
    if truth is not None:
        _running_truth(bench, truth)
    if state.current is not None or truth is not None:
        return
    device = layer.source.device
    left = state.runs - state.runs_done
    command = f"kernelviz model {layer.call.preset} --phase {layer.call.phase} --batch {layer.call.batch}"
    command += f" --context {layer.call.context} --dtype {layer.call.dtype}"
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="measure_model_row"):
        label = (
            "Measure all parts again"
            if left == 0
            else "Resume measuring"
            if state.stopped
            else "Measure what is missing"
        )
        callbacks.button(
            label, partial(_start, bench, layer, session.owner(), again=left == 0), key="measure_model",
            about=layer.call.preset, icon=":material/play_arrow:", type="secondary" if left == 0 else "primary",
            disabled=not device.usable, help=plain(f"In a terminal: {command} --measure"),
        )  # fmt: skip
        callbacks.button(
            "Measure the whole layer again" if layer.truth else "Measure the whole layer",
            partial(_start_truth, bench, layer, session.owner()), key="measure_truth", about=layer.call.preset,
            icon=":material/layers:", disabled=not device.usable,
            help=plain(f"The layer as one torch module, eager and compiled. In a terminal: {command} --truth"),
        )  # fmt: skip
        stopped = f", of which {state.stopped} stopped before" if state.stopped else ""
        st.caption(f"{left} of {units.counted(state.runs, 'run')} are to be measured{stopped}.")


def _start(bench: Bench, layer: Layer, owner: str, *, again: bool) -> None:
    model_runs.start_all(bench, layer, again=again, owner=owner)


def _start_truth(bench: Bench, layer: Layer, owner: str) -> None:
    model_runs.start_truth(bench, layer, owner=owner)


def _running(bench: Bench, layer: Layer, state: model_runs.ModelProgress, run_id: str) -> None:
    with st.container(border=True, key="measuring_model"):
        name = bench.history.summary(run_id).name
        st.progress(
            state.runs_done / max(state.runs, 1),
            text=plain(
                f"{state.runs_done} of {units.counted(state.runs, 'run')} done · now {name} · {state.waiting} wait"
            ),
        )
        progress = live_progress.progress_of(bench, run_id)
        if progress is not None:
            live_progress.following(run_id, progress, key="live_model")
        with st.container(horizontal=True, gap="small"):
            device_id = layer.source.device.id
            callbacks.button(
                "Cancel all", partial(model_runs.cancel_all, bench, device_id), key="cancel_model", about=device_id,
                icon=":material/stop_circle:", help="Results so far stay. Resume goes on where it ended.",
            )  # fmt: skip
            site.run_link("Open this run", run_id)
        _watch(bench, run_id)


@st.fragment(run_every=_EACH_S)
def _watch(bench: Bench, run_id: str) -> None:
    """Redraw the page when the run has ended, so that the next one is followed."""
    progress = live_progress.progress_of(bench, run_id)
    if progress is None or progress.status not in LIVING:
        st.rerun()


def _running_truth(bench: Bench, run_id: str) -> None:
    with st.container(border=True, key="measuring_truth"):
        _watch_truth(bench, run_id)
        with st.container(horizontal=True, gap="small"):
            callbacks.button(
                "Cancel", partial(bench.workloads.cancel, run_id), key="cancel_truth", about=run_id,
                icon=":material/stop_circle:",
            )  # fmt: skip
            site.workload_link("Open on Workloads", run_id)


@st.fragment(run_every=_EACH_S)
def _watch_truth(bench: Bench, run_id: str) -> None:
    state = bench.workloads.progress(run_id)
    if state.status not in LIVING:
        st.rerun()
    now = "" if state.now is None else f": {describe_progress(state.now)}"
    st.markdown(plain(f"Measuring the whole layer, {state.done} of {state.total} variants done{now}"))
