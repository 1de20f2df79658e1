"""Measuring on the page Autotune: start, progress, cancel, resume, and storing the best configuration so far."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, BadField, Device, Method, Plan, Run
from kernelviz.core.configuration import configuration_text
from kernelviz.metrics.tuning import is_tuning, tried
from kernelviz.ui.autotune import choice
from kernelviz.ui.shared import callbacks, device_strip, live_progress, session, site
from kernelviz.ui.shared.text import plain

_KIND, _STORED = "autotune", "autotune_kept"


def open_started_run() -> None:
    """Show the tuning that the form has started, if any."""
    started = callbacks.actions().activities.pop(_KIND, None)
    if started is not None:
        choice.choose_run(started)


def start_button(bench: Bench, device: Device, plan: Plan, method: Method) -> None:
    """The button that starts a tuning."""
    callbacks.button(
        "Start", partial(_start, bench, plan, method, callbacks.actions(), session.owner()), key="autotune_start",
        about=plan.problems[0].key, icon=":material/play_arrow:", type="primary", disabled=not device.usable,
        help=None if device.usable else plain(device.reason),
    )  # fmt: skip


def _start(bench: Bench, plan: Plan, method: Method, actions: callbacks.Actions, owner: str) -> None:
    actions.activities[_KIND] = bench.run(plan, method, owner=owner)


def controls(bench: Bench, run: Run) -> None:
    """The progress of a tuning that is measured, with Cancel; or, if it was cut short, Resume and Store the best so far."""
    progress = live_progress.progress_of(bench, run.id)
    if progress is not None and progress.status in LIVING:
        if any(device.id == run.plan.device for device in bench.devices()):
            device_strip.notices(bench.notices(run.plan.device), on_one_line=True)
        live_progress.running_activity(
            bench, run.id, progress,
            f"Measuring {run.plan.search.variant if run.plan.search else run.plan.op} on {run.environment.device.name}. "
            "The charts grow as results arrive, and a configuration that fails does not end the search. At the end, the best "
            "ones are measured again together.",
            key="autotune", box="autotune_progress",
        )  # fmt: skip
        return
    stored_message = callbacks.actions().activities.get(_STORED, "")
    if stored_message.startswith(f"{run.id} "):
        st.success(plain(stored_message.removeprefix(f"{run.id} ")), icon=":material/check:")
    if run.status in ("cancelled", "interrupted") and is_tuning(run):
        done = sum(not r.given_up for r in run.results)
        nothing = tried(run).best is None
        keep_help = (
            "No configuration is correct so far." if nothing else f"In a terminal: kernelviz tunings keep {run.id}"
        )
        stored = any(one.tuning.run_id == run.id for one in bench.tunings.find(run.plan.op))
        later = "the best so far is stored for later runs" if stored else "none is stored for later runs yet"
        st.warning(
            f"This tuning was {run.status}: {done} of {len(run.plan.variants)} configurations have a result, and {later}.",
            icon=":material/pause_circle:",
        )
        with st.container(horizontal=True, gap="small", key="autotune_resume_row"):
            callbacks.button(
                "Resume", partial(bench.resume, run.id, owner=session.owner()), key="autotune_resume", about=run.id,
                icon=":material/play_arrow:", type="primary",
            )  # fmt: skip
            callbacks.button(
                "Store the best so far", partial(_keep, bench, run.id, callbacks.actions()), key="autotune_keep", about=run.id,
                icon=":material/save:", disabled=nothing,
                help=plain(keep_help),
            )  # fmt: skip
            site.run_link("Open on Bench: samples, code, export", run.id)
        return
    site.run_link("Open on Bench: samples, code, export, snapshot", run.id)


def _keep(bench: Bench, run_id: str, actions: callbacks.Actions) -> None:
    try:
        stored = bench.tunings.keep(run_id)
    except BadField:
        actions.activities.pop(_STORED, None)
        raise
    actions.activities[_STORED] = (
        f"{run_id} {stored.variant} uses {configuration_text(stored.configuration)} from now on for {stored.problem.key}."
    )
