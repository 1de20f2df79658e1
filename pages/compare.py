"""Compare: what changed between two runs, or between two variants of one run; the worst case first."""

import streamlit as st

from kernelviz.bench.comparison import compare_stored
from kernelviz.text.caches import format_caches
from kernelviz.ui.compare import choice, code_panel, no_common_case, panels, slowdown_panel
from kernelviz.ui.shared import session, view_filters

bench = session.bench()
panels.title()
runs = choice.run_boxes(bench)
if runs is None:
    choice.empty_state(bench)
    st.stop()

with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="choices"):
    variant_a, variant_b = choice.variant_boxes(bench, *runs)
    l2 = view_filters.l2_control(cache=format_caches(*bench.history.devices(runs)), label_visibility="visible")
if runs[0] == runs[1] and (variant_a or variant_b) == (variant_b or variant_a):
    panels.same_run()
    st.stop()

comparison = compare_stored(bench, *runs, variant_a=variant_a, variant_b=variant_b, l2=l2)
if not comparison.pairs:
    no_common_case.no_common_case(bench, comparison)
    panels.environment_differences(comparison)
    st.stop()

panels.verdict_tiles(comparison)
panels.cases_without_time_in_b(comparison)
panels.cases_without_verdict(comparison)
left, right = st.columns([1.6, 1], gap="medium")
with right:
    panels.measurement_noise(comparison)
    panels.environment_differences(comparison)
with left:
    panels.verdict_bars(comparison)
slowdown_panel.slower_cases(bench, comparison)
st.markdown("##### One case")
pair = panels.case_box(comparison)
left, right = st.columns([1.6, 1], gap="medium")
with left:
    panels.samples_of_case(comparison, pair)
with right:
    panels.verdict_of_case(comparison, pair)
slowdown_panel.why(bench, comparison, pair)
code_panel.machine_code_of_case(bench, comparison, pair)
st.markdown("##### All cases")
panels.case_table(comparison)
panels.cases_in_one_run_only(comparison)
panels.verdict_rule(comparison)
