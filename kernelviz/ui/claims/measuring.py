"""The button that measures all claims that can be tested on this device, with progress, cancel and resume."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench, claim_runs, claim_workloads
from kernelviz.bench.claim_runs import ClaimProgress
from kernelviz.bench.claims import ClaimsOnDevice
from kernelviz.core import LIVING, units
from kernelviz.metrics.claims import Assessment
from kernelviz.ui.shared import callbacks, live_progress, session, site
from kernelviz.ui.shared.text import plain

_EACH_S = 2.0
"""While runs wait, the page looks this often which of them is measured now."""


def progress_on(bench: Bench, of_device: ClaimsOnDevice) -> ClaimProgress | None:
    """Where the measurements are; None for recorded results, whose device is elsewhere."""
    return None if of_device.recorded is not None else claim_runs.progress(bench, of_device)


def measure_all(bench: Bench, of_device: ClaimsOnDevice, state: ClaimProgress | None) -> None:
    """The button, or the progress of what it started. Nothing for recorded results."""
    if state is None:
        st.caption(
            "These results were recorded on another machine. To measure the claims here, choose this machine above."
        )
        return
    device = of_device.device
    if state.current is not None:
        _running(bench, device.id, state, state.current)
        return
    left = state.runs - state.runs_done
    if not state.runs:
        st.caption("Nothing that a claim needs can be measured on this device; what it would take is in the table.")
        return
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key="measure_claims_row"):
        again = left == 0
        label = (
            "Measure all again"
            if again
            else "Resume measuring"
            if state.stopped
            else "Measure all that can be tested here"
        )
        callbacks.button(
            label,
            partial(_start, bench, device.id, session.owner(), again=again),
            key="measure_claims",
            about=device.id,
            icon=":material/play_arrow:",
            type="secondary" if again else "primary",
            disabled=not device.usable,
            help="In a terminal, `kernelviz claims run` does the same.",
        )
        st.caption(plain(_summary(state)))


def measure_one(bench: Bench, of_device: ClaimsOnDevice, one: Assessment, state: ClaimProgress | None) -> None:
    """A button that measures what one claim needs, or its progress; nothing where that is not possible."""
    if state is None or not one.measurable:
        return
    device_id, claim_id = of_device.device.id, one.claim.id
    if state.living:
        _running_one(bench, of_device, claim_id)
        return
    callbacks.button(
        "Measure this claim again" if one.run_ids else "Measure this claim",
        partial(_start, bench, device_id, session.owner(), again=True, claims=(claim_id,)),
        key="measure_claim",
        about=claim_id,
        icon=":material/play_arrow:",
        help=plain(f"In a terminal, `kernelviz claims run {claim_id} --again` does the same."),
    )


def _running_one(bench: Bench, of_device: ClaimsOnDevice, claim_id: str) -> None:
    """The progress of the runs of one claim beside its description, with a button that cancels them; that others are measured
    first, or that this one has to wait until they are done."""
    mine = claim_runs.progress(bench, of_device, (claim_id,))
    if mine.current is None:
        st.caption("Other claims are being measured. This one can be started when they are done or cancelled.")
        return
    of_workload = bench.workloads.is_known(mine.current)
    progress = None if of_workload else live_progress.progress_of(bench, mine.current)
    with st.container(border=True, key="measuring_claim"):
        more = f" {units.counted(mine.waiting, 'more run')} of this claim wait." if mine.waiting else ""
        name = (bench.workloads if of_workload else bench.history).summary(mine.current).name
        st.caption(plain(f"This claim is being measured: {name}.{more}"))
        if progress is not None:
            live_progress.following(mine.current, progress, key="live_claim")
        runs = claim_runs.claim_runs(bench, of_device, (claim_id,))
        workloads = claim_workloads.workload_runs(of_device.assessments, (claim_id,))
        cancel = partial(claim_runs.cancel_all, bench, of_device.device.id, runs, workloads)
        callbacks.button(
            "Cancel", cancel, key="cancel_claim", about=claim_id,
            icon=":material/stop_circle:", help="Cancels the runs of this claim. Results so far stay.",
        )  # fmt: skip


def _summary(state: ClaimProgress) -> str:
    if state.runs_done == state.runs:
        return f"All {units.counted(state.runs, 'run')} that claims need here have results."
    stopped = f", of which {state.stopped} cancelled or interrupted before" if state.stopped else ""
    left = state.runs - state.runs_done
    each = "Each is one problem, or a workload at one size, with all its variants."
    return f"{left} of {units.counted(state.runs, 'run')} are to be measured{stopped}. {each}"


def _start(bench: Bench, device_id: str, owner: str, *, again: bool, claims: tuple[str, ...] | None = None) -> None:
    claim_runs.start_all(bench, device_id, claims=claims, again=again, owner=owner)


def _running(bench: Bench, device_id: str, state: ClaimProgress, run_id: str) -> None:
    with st.container(border=True, key="measuring_claims"):
        of_workload = bench.workloads.is_known(run_id)
        name = (bench.workloads if of_workload else bench.history).summary(run_id).name
        st.progress(
            state.runs_done / max(state.runs, 1),
            text=plain(
                f"now {name} · {units.counted(state.waiting, 'run')} waiting · {state.runs_done} of the "
                f"{units.counted(state.runs, 'run')} for all claims have results"
            ),
        )
        progress = None if of_workload else live_progress.progress_of(bench, run_id)
        if progress is not None:
            live_progress.following(run_id, progress, key="live_claims")
        with st.container(horizontal=True, gap="small"):
            callbacks.button(
                "Cancel all", partial(claim_runs.cancel_all, bench, device_id), key="cancel_claims", about=device_id,
                icon=":material/stop_circle:", help="Results so far stay. Resume goes on where it ended.",
            )  # fmt: skip
            (site.workload_link if of_workload else site.run_link)("Open this run", run_id)
        _watch(bench, run_id)


@st.fragment(run_every=_EACH_S)
def _watch(bench: Bench, run_id: str) -> None:
    """Redraw the page when the run has ended, so that the next one is followed."""
    of_workload = bench.workloads.is_known(run_id)
    progress = bench.workloads.progress(run_id) if of_workload else live_progress.progress_of(bench, run_id)
    if progress is None or progress.status not in LIVING:
        st.rerun()
