"""Workloads: what is larger than a kernel (a training step, an all-reduce, a data loader), measured with figures of its own."""

import streamlit as st

from kernelviz.ui.shared import session
from kernelviz.ui.workloads import choice, comparing, form, measuring, panels

bench = session.bench()
panels.title()
workload = choice.workload(bench)
if workload is None:
    panels.nothing_installed()
else:
    choice.report_unknown(bench, workload)
    panels.about(workload)
    measuring.open_started_run()
    progress = st.container()  # above the form, which may fill the screen
    form.new_run(bench, workload)
    run = choice.run_box(bench, workload)
    if run is None:
        panels.nothing_measured(bench, workload)
    else:
        measuring.controls(bench, run, progress)
        if choice.view() == "compare":
            comparing.two_runs(bench, run)
        else:
            panels.of_run(bench, run)
        panels.out(bench, run)
