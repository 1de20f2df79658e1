"""History: every run kept here, found, opened, named, deleted and brought back, downloaded and uploaded; and trends over them."""

from __future__ import annotations

import streamlit as st

from kernelviz.ui.history import one_run, runs, trends, upload
from kernelviz.ui.shared import session, view_filters

VIEWS = ("runs", "trends")

bench = session.bench()
upload.heading(bench)
one_run.undo_bar(bench)
view_filters.seed("lists", VIEWS, "runs")
shown = st.segmented_control(
    "Show", VIEWS, key="lists", required=True, label_visibility="collapsed", format_func=str.capitalize
)
view_filters.keep("lists", shown, "runs")
if shown == "trends":
    trends.show(bench)
else:
    search = runs.search_box()
    runs.show(bench, search)
    runs.shipped(bench)
    runs.deleted(bench)
