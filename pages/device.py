"""Device: what this machine is, what it does now, and its roofs: measured, compared with the data sheet, and over time."""

import streamlit as st

from kernelviz.hardware.datasheet import datasheet
from kernelviz.ui.device import data_sheets, live, machine, roofs
from kernelviz.ui.shared import device_strip, live_progress, session, view_filters

bench = session.bench()
st.markdown("#### Device: this machine, its limits and its activity")
device = view_filters.device_choice(bench)
device_strip.notices(bench.notices(device.id))
machine.device_summary(bench, device)
machine.device_facts(bench, device)

st.markdown("##### Activity now and in the last hour")
with st.container(horizontal=True, vertical_alignment="top", gap="small", key="live_choices"):
    window_s = live.window_control()
    thresholds = live.threshold_boxes()
live.activity(bench, device, window_s, thresholds)
live.how_to_read(device)

calibration = live_progress.activity_to_show(bench, roofs.PARAM)
roofs.heading_and_calibrate_button(bench, device, calibration)
roofs.calibration_progress(bench, device, calibration)
roofs.refused_roofs(bench.machine.refused_roofs(device.id))
cache = bench.machine.last_level_cache(device)
roofs.roof_table(
    bench.roofs(device.id), datasheet(device.name), device, calibration, cache.size_bytes if cache else None
)

st.markdown("##### Change between calibrations")
roofs.roof_changes(bench, device)

st.markdown("##### Data sheets of all GPUs")
data_sheets.sheet_table(bench, data_sheets.search_box())

st.markdown("##### Kernel times of recent runs")
machine.recent_kernel_times(bench, device)
