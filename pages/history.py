"""History: every stored run, also of workloads (search, open, name, delete, restore, download, upload), and trends."""

import streamlit as st

from kernelviz.ui.history import one_run, runs, trends, upload, workload_runs
from kernelviz.ui.shared import device_strip, session, view_filters

bench = session.bench()
upload.title_and_upload(bench)
device_strip.notices(bench.history.unwritable)
one_run.undo_bar(bench)
view = view_filters.choose(
    st.segmented_control, "View", ("runs", "workloads", "trends"), "runs", key="lists", label_visibility="collapsed",
    format_func=str.capitalize,
)  # fmt: skip

if view == "runs":
    runs.say_missing(bench)
    search = runs.search_box()
    runs.run_list(bench, search)
    runs.shipped_runs(bench, search)
    runs.deleted_runs(bench)
    st.stop()
if view == "workloads":
    workload_runs.workload_list(bench, runs.search_box("workload"))
    st.stop()

device, l2 = trends.device_and_l2(bench)
cases = trends.cases_with_trend(bench, device, l2)
if not cases:
    trends.empty_state(l2)
    st.stop()
slower = bench.trends.slower(cases)
trends.regressions(slower, len(cases))
chosen = trends.case_box(cases, slower)
trends.trend_of_case(
    bench.trends.case(device, chosen.problem, chosen.variant, l2=l2) or chosen, bench.device(device).name
)
