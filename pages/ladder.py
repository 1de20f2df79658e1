"""Ladder: the rungs of an op from the plainest kernel to the best, what each gains here and as published, and what changed."""

import streamlit as st

from kernelviz.bench import ladder as use_case
from kernelviz.ui.ladder import choice, measuring, panels
from kernelviz.ui.shared import session, view_filters

bench = session.bench()
panels.title()
measuring.open_started_run()
choice.say_missing(bench)
device = view_filters.device_choice(bench)
notices = st.container(gap="xsmall", key="ladder_notices")
with st.container(horizontal=True, gap="small", vertical_alignment="bottom", key="ladder_choice"):
    op = bench.ops()[choice.op(bench, notices)]
    run = choice.run(bench, op.name)
    document = None if run is None else bench.load(run.id)
    problem = None if document is None else choice.problem(bench, document, notices)
measuring.controls(bench, op, device, run, problem)
if run is None or document is None or problem is None:
    panels.nothing_measured(bench, op, device)
    panels.method()
else:
    with st.container(horizontal=True, gap="medium", vertical_alignment="bottom", key="ladder_view"):
        headline = choice.headline(document, notices)
        ladder = use_case.ladder_of_stored(bench, run.id, problem.key, headline)
        of = choice.backend(ladder, notices)
        metric = choice.metric(ladder, notices)
    panels.page_of(bench, run, ladder, of, metric, device, op)
