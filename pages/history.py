"""History: every run kept here, found, opened, named, deleted and brought back, downloaded and uploaded; and trends over them."""

from __future__ import annotations

import streamlit as st

from kernelviz.ui import history_list, history_run, session, trends, upload, view

VIEWS = ("runs", "trends")

bench = session.bench()
upload.heading(bench)
history_run.undo_bar(bench)
view.seed("lists", VIEWS, "runs")
shown = st.segmented_control(
    "Show", VIEWS, key="lists", required=True, label_visibility="collapsed", format_func=str.capitalize
)
view.keep("lists", shown, "runs")
if shown == "trends":
    trends.show(bench)
else:
    search = history_list.search_box()
    history_list.show(bench, search)
    history_list.shipped(bench)
    history_list.deleted(bench)
