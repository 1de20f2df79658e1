"""Model: a transformer layer of a published model op by op, and against the layer as one module."""

import streamlit as st

from kernelviz.bench import model
from kernelviz.ui.model import choice, measuring, panels
from kernelviz.ui.shared import session

bench = session.bench()
choice.title()
chosen = choice.selection(bench)
if chosen is not None:
    with st.spinner("Reading stored results…"):
        layer = model.opened(bench, chosen.preset, chosen.call, chosen.source)
    measuring.controls(bench, layer)
    panels.layer_panel(layer)
    panels.truth_panel(layer)
    panels.mix_panel(bench, chosen)
    panels.out(layer)
panels.method()
