"""Fusion: what one kernel saves in place of several, predicted in two ways and measured, by family and size."""

import streamlit as st

from kernelviz.ui.fusion import cards, choice, measuring, panels
from kernelviz.ui.shared import session

bench = session.bench()
panels.title()
top = st.container()
measuring.open_started_run(bench)
device = choice.device(bench)
chosen = choice.selection(bench)
with top:
    choice.check_run(bench, chosen)
cards.families(bench, chosen, device)
panels.heading(chosen)
run = choice.run_box(bench, chosen)
measuring.controls(bench, chosen, device, run)
if run is None:
    panels.nothing_measured(bench, chosen, device)
else:
    panels.of_run(bench, chosen, run)
panels.method()
