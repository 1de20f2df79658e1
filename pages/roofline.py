"""Roofline: what limits each case; any runs, of one GPU or several, under the roofs of their machines."""

import streamlit as st

from kernelviz.bench.roofline import place
from kernelviz.plots.roofline_of_runs import HEIGHT
from kernelviz.text.caches import format_caches
from kernelviz.ui.roofline import choice, panels
from kernelviz.ui.shared import session, view_filters

bench = session.bench()
panels.title()
run_ids = choice.run_box(bench)
if not run_ids:
    choice.empty_state(bench)
    st.stop()

controls = st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="view")
with controls:
    devices = bench.history.devices(run_ids)
    level = choice.memory_level(format_caches(*devices))
    source = choice.roof_source()
placement = place(bench, run_ids, level=level, source=source)
if not placement.cases:
    panels.no_timed_case(placement, level)
    st.stop()

with controls:
    cases = choice.of_precision(placement.cases)
with st.container(horizontal=True, gap="medium", key="isolate_row"):
    variant, case = choice.highlighted(cases)
panels.remarks(placement, cases, level, source, devices)
left, right = st.columns([1.35, 1], gap="medium")
with left:
    panels.roofline_chart(cases, variant, case, [bench.history.openable(run_id) for run_id in run_ids])
with right:
    if case is not None:
        panels.case_facts(next(c for c in cases if c.key == case))
    height = panels.SMALL_TABLE_PX if case is not None else HEIGHT
    selected = panels.case_table(cases, variant, height)
view_filters.follow({"seen_pick": selected}, choice.PENDING)
panels.limiter_counts([c for c in cases if variant in (None, c.group)])
