"""Claims: published numbers, what this device measures, and which of them hold."""

import streamlit as st

from kernelviz.bench.claims import selected
from kernelviz.ui.claims import choice, measuring, panels
from kernelviz.ui.shared import session

bench = session.bench()
choice.title()
of_device = choice.results(bench)
panels.counts(bench, of_device)
state = measuring.progress_on(bench, of_device)
measuring.measure_all(bench, of_device, state)
chosen = choice.filters(of_device.assessments)
listed = selected(of_device.assessments, source=chosen.source, verdict=chosen.verdict, op=chosen.op)
clicked = panels.claim_table(listed)
described = choice.claim_box(listed)
if clicked is not None and clicked != st.session_state.get("seen_claim"):
    st.session_state["seen_claim"] = clicked
    if clicked != described:
        st.session_state[choice.PENDING] = clicked
        st.rerun()
if clicked is None:
    st.session_state.pop("seen_claim", None)
if described is not None:
    one = next(a for a in listed if a.claim.id == described)
    panels.one_claim(bench, of_device, one)
    measuring.measure_one(bench, of_device, one, state)
with st.container(horizontal=True, gap="small", key="claims_out"):
    panels.as_file(bench, of_device, listed)
panels.rule()
panels.contradictions()
panels.sources()
