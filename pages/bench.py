"""Bench: choose an op, variants and sizes, measure them on this machine, and see which is fastest and how far from the limit."""

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, Run, UnknownRun
from kernelviz.metrics import foreign_times
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.text.cells import failures
from kernelviz.ui.bench import (
    charts,
    empty_states,
    foreign_run,
    heading,
    inspection,
    live_mode,
    plan_form,
    samples,
    second_run,
    tabs,
)
from kernelviz.ui.shared import callbacks, device_strip, live_progress, session, share, tiles


def stored_run(bench: Bench, run_id: str | None) -> Run | None:
    """The run of that id, None if the database does not have it."""
    try:
        return bench.load(run_id) if run_id is not None else None
    except UnknownRun:
        return None


# The form in the sidebar, filled from the address; Run starts it, and in live mode each change does.
bench = session.bench()
run_id, complaints = plan_form.open_address(bench)
request = plan_form.sidebar(bench)
if request is not None:
    plan, request_form = request
    actions, owner = callbacks.actions(), session.owner()
    actions.started_run = bench.run(plan, request_form.method, owner=owner)
    actions.run_pressed = False
    second_run.show_one_run()
    st.rerun()
empty_states.invalid_link(complaints)
form = plan_form.current()
live_run_id = live_mode.measure_change(bench, form)
if live_run_id is not None:
    run_id = live_run_id
    plan_form.remember(run_id)

# The progress is read before the results: see live_progress.progress_of.
progress = live_progress.progress_of(bench, run_id)
calibration = live_progress.activity_of_session(bench, device_strip.CALIBRATION)
stored = stored_run(bench, run_id)
device = stored.environment.device if stored is not None else bench.device(form.device)
roofs = bench.roofs_of(stored) if stored is not None else bench.roofs(device.id)
device_strip.device_strip(bench, device, stored, roofs, calibration)

# Without a run: a first visit, or a run that is not on this server.
if stored is None:
    if run_id is not None:
        empty_states.missing_run(bench, run_id)
    else:
        empty_states.first_visit(bench.ops()[form.op], form, bench.runs(8), bench.history.shipped())
    st.stop()

# A run of another tool has times only.
if foreign_times.alone(stored):
    foreign_run.foreign_heading(bench, stored)
    time_name = foreign_run.time_box(stored)
    foreign_run.times_chart(stored, time_name)
    foreign_run.times_table(stored)
    st.stop()

# The head of the run, and its tiles.
variants, headline, share_box = heading.run_heading(bench, stored, progress)
heading.run_notes(bench, stored, headline)
second = second_run.second_run(bench, stored)
if second is not None:
    second_run.two_runs_bar(stored, second)
run, second = second_run.narrowed_pair(bench, stored, second, variants)
if progress is not None and progress.status in LIVING:
    heading.run_progress(bench, run, progress)
results = rows(run, roofs, headline)
tiles.run_tiles(summary(results, headline), run.plan, headline)
if not results:
    st.caption("Results appear here when the first case is done. Compiled variants appear once they are built.")
    share.fill(share_box, bench, stored.id, run=stored, variants=variants)
    st.stop()

# Charts by size, and at one size.
runs = charts.runs_in_charts(run, second)
chart_results = tuple(row for row in results if row.result.variant in runs[0].plan.variants)
left, right = st.columns([1.15, 1], gap="medium")
with left:
    clicked = charts.chart_by_size(runs, chart_results, headline)
with right:
    problem = charts.size_box(chart_results, clicked)
    charts.roofline_at_size(runs, problem, headline)
left, right = st.columns([1.15, 1], gap="medium")
with left:
    charts.time_bars(runs, problem, headline)
with right:
    charts.variants_compared_with_baseline(runs, problem, headline)

# Details, a tab each.
failed = failures(results)
tabs.draw_open_tab(
    {
        "Table": lambda: tabs.case_tables(run, results, headline, second),
        "Figures": lambda: tabs.timing_table(run, results),
        "Samples": lambda: samples.samples_at_size(run, results, problem),
        tabs.failures_label(failed): lambda: tabs.failure_list(run, failed),
        "Kernels": lambda: tabs.kernel_table(results),
        "Inspect": lambda: inspection.tensors_and_errors(bench, run, results, problem),
        "Variants": lambda: empty_states.variant_list(bench.ops().get(run.plan.op), run.plan.variants),
    }
)

# Last, when every widget above has written its value into the address, which the link repeats.
share.fill(share_box, bench, stored.id, run=stored, variants=variants)
