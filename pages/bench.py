"""Bench: choose an op, variants and sizes, measure them on this machine, and see which is fastest and how far from the limit."""

from functools import partial

import streamlit as st

from kernelviz.bench import Bench
from kernelviz.core import LIVING, Run, UnknownRun
from kernelviz.formats.offline import selection
from kernelviz.metrics import foreign_times
from kernelviz.metrics.rows import rows
from kernelviz.metrics.summary import summary
from kernelviz.text.cells import failures
from kernelviz.ui.bench import (
    charts,
    checklist,
    counters,
    empty_states,
    foreign_run,
    heading,
    inspection,
    landing,
    live_mode,
    machine_code,
    plan_form,
    plan_start,
    samples,
    second_run,
    tabs,
)
from kernelviz.ui.shared import device_strip, live_progress, run_in_hand, session, share, tiles


def stored_run(bench: Bench, run_id: str | None) -> Run | None:
    """The run of that id, None if the database does not have it."""
    try:
        return bench.load(run_id) if run_id is not None else None
    except UnknownRun:
        return None


# The form in the sidebar, filled from the address; Run starts it, and in live mode each change does.
bench = session.bench()
run_id, complaints = plan_form.open_address(bench)
# The progress is read before the results: see live_progress.progress_of.
progress, stored = live_progress.progress_of(bench, run_id), stored_run(bench, run_id)
form = plan_form.current()
# In live mode, a change is measured while the form is drawn.
live_run_id = live_mode.measure_change(bench, form, stored)
request = plan_form.sidebar(bench, stored)
if request is not None:
    plan_start.start(bench, *request)
else:
    bench.prepare(form.device)
empty_states.invalid_link(complaints)
note_place = live_mode.note_place()
if live_run_id is not None:
    run_id = live_run_id
    plan_form.remember(run_id)
    progress, stored = live_progress.progress_of(bench, run_id), stored_run(bench, run_id)
    if stored is not None:
        live_mode.note(note_place, live_mode.last_result(bench, stored, progress), stored)
    live_mode.wait(bench, run_id)
    progress, stored = live_progress.progress_of(bench, run_id), stored_run(bench, run_id)
# Until the new run has a result, the last one stays, dimmed.
measured, last = stored, live_mode.last_result(bench, stored, progress)
if stored is not None and last is not None:
    live_mode.note(note_place, last, stored)
    stored = last
else:
    note_place.empty()

run_in_hand.take(run_id)
calibration = live_progress.activity_of_session(bench, device_strip.CALIBRATION)
# Without a run, a recorded one of the form's op is shown as an example.
example = landing.recorded_run(bench, form.op) if run_id is None else None
if example is not None:
    stored = example
    landing.introduction(bench, form, example, bench.runs(8))
device = stored.environment.device if stored is not None else bench.device(form.device)
roofs = bench.roofs_of(stored) if stored is not None else bench.roofs(device.id)
offer = partial(second_run.run_here_offer, bench, stored) if stored is not None and example is None else None
device_strip.device_strip(bench, device, stored, roofs, calibration, offer)

# Without a run: a first visit of an op that has no recorded run, or a run that is not on this server.
if stored is None:
    if run_id is not None:
        empty_states.missing_run(bench, run_id)
    else:
        empty_states.first_visit(bench, bench.ops()[form.op], form, bench.runs(8), bench.history.shipped())
    st.stop()

# A page of 100,000 cases would take minutes, in which the server answers nobody else quickly.
whole, stored = stored, selection.part_of(stored, selection.MOST_ON_BENCH)
if stored is not whole:
    st.info(selection.describe_part(whole, stored), icon=":material/filter_list:")

# A run of another tool has times only.
if foreign_times.alone(stored):
    foreign_run.foreign_heading(bench, stored)
    time_name = foreign_run.time_box(stored)
    foreign_run.times_chart(stored, time_name)
    foreign_run.times_table(stored)
    foreign_run.counters_table(stored)
    st.stop()

# The head of the run, and its tiles.
variants, headline, share_box = heading.run_heading(bench, stored, progress)
heading.warm_caption(stored, headline)
second = second_run.second_run(bench, stored)
if second is not None:
    second_run.two_runs_bar(stored, second)
run, second = second_run.narrowed_pair(bench, stored, second, variants)
if progress is not None and progress.status in LIVING:
    heading.run_progress(bench, run if last is None else measured or run, progress)
results = rows(run, roofs, headline)
answers = summary(results, headline)
tiles.run_tiles(stored if stored.plan.search is not None else run, results, headline)
heading.memory_caption(results, run.plan, answers)
if not results:
    st.caption("Results appear here when the first case is done. Compiled variants appear once they are built.")
    share.fill(share_box, bench, stored.id, run=stored, variants=variants)
    st.stop()

# Charts by size, and at one size.
runs = charts.runs_in_charts(run, second)
styled = charts.variants_with_styles(stored)
chart_results = tuple(row for row in results if row.result.variant in runs[0].plan.variants)
left, right = st.columns([1.15, 1], gap="medium")
with left:
    charts.chart_by_size(runs, chart_results, headline, styled)
with right:
    problem = charts.size_box(chart_results)
    charts.roofline_at_size(runs, problem, headline, styled)
# Details, a tab each.
failed = failures(results)
tabs.draw_open_tab(
    {
        "Table": lambda: tabs.case_tables(run, results, roofs, headline, second),
        "Figures": lambda: tabs.timing_table(run, results, roofs, headline),
        "Checklist": lambda: checklist.points_at_size(run, whole, results, roofs, problem, headline),
        "Samples": lambda: samples.samples_at_size(run, results, problem, styled),
        tabs.failures_label(failed): lambda: tabs.failure_list(run, failed),
        "Kernels": lambda: tabs.kernel_table(results),
        "Machine code": lambda: machine_code.facts_of_cases(bench, run, whole, problem),
        "Counters": lambda: counters.counters_of_case(bench, run, results, problem),
        "Inspect": lambda: inspection.tensors_and_errors(bench, run, results, problem),
        "Variants": lambda: empty_states.variant_list(bench.ops().get(run.plan.op), run.plan.variants),
    }
)

# Below the table, so that its first rows are in the first view.
left, right = st.columns([1.15, 1], gap="medium")
with left:
    charts.time_bars(runs, problem, headline, styled)
with right:
    charts.variants_compared_with_baseline(runs, problem, headline, styled)

# Last, when every widget above has written its value into the address, which the link repeats.
share.fill(share_box, bench, stored.id, run=stored, variants=variants)
