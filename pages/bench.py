"""Bench: pick an op and variants, run them live on this machine, see time, bandwidth and the roof."""

from __future__ import annotations

import streamlit as st

from kernelviz.bench import RunSummary
from kernelviz.core.errors import UnknownRun
from kernelviz.core.problem import Plan
from kernelviz.core.run import Run
from kernelviz.metrics import foreign_times
from kernelviz.ui.bench import empty_states, foreign_run, live_mode, plan_form, results, second_run
from kernelviz.ui.bench.form import Form
from kernelviz.ui.shared import callbacks, device_strip, live_progress, session
from kernelviz.ui.shared.text import plain

bench = session.bench()
run_id, complaints = plan_form.opened(bench)
asked = plan_form.sidebar(bench)


def start(plan: Plan, form: Form) -> None:
    kept, owner = callbacks.kept(), session.owner()
    kept.begun = bench.run(plan, form.method, owner=owner)
    kept.asked = False
    second_run.leave()
    st.rerun()


def stored(wanted: str) -> Run | None:
    try:
        return bench.load(wanted)
    except UnknownRun:
        return None


def deleted(wanted: str) -> RunSummary | None:
    try:
        found = bench.history.summary(wanted)
    except UnknownRun:
        return None
    return found if found.deleted_at is not None else None


if asked is not None:
    start(*asked)
if complaints:
    listed = "".join(f"\n- {plain(c.message)}" for c in complaints)
    st.warning(f"**Some of this link could not be used:**{listed}", icon=":material/link_off:")

form = plan_form.current()
changed = live_mode.follow(bench, form)
if changed is not None:
    run_id = changed
    plan_form.remember(run_id)
# Where they stand comes before what there is of them: see live.state.
progress = live_progress.state(bench, run_id) if run_id is not None else None
calibration = device_strip.calibration(bench)
run = stored(run_id) if run_id is not None else None
device = run.environment.device if run is not None else bench.device(form.device)
roofs = bench.roofs_of(run) if run is not None else bench.roofs(device.id)
device_strip.strip(bench, device, run, roofs, calibration)
if run is not None and foreign_times.alone(run):
    foreign_run.show(bench, run)
elif run is not None:
    results.show(bench, run, progress, roofs)
elif run_id is not None:
    gone = deleted(run_id)
    if gone is not None:
        empty_states.deleted_run(bench, gone)
    else:
        empty_states.unknown_run(run_id, bench.runs(8))
else:
    empty_states.first_visit(bench.ops()[form.op], form, bench.runs(8), bench.history.shipped())
