"""The page that response times are compared with: three charts of a recorded run by `st.plotly_chart`, and nothing else.

`measure_pages.py` serves it and measures it in the same rounds as the pages of the app.
"""

from __future__ import annotations

import streamlit as st

from kernelviz import plots
from kernelviz.formats import shipped_runs

st.set_page_config(layout="wide")
run = shipped_runs.load("h200-softmax")
problem = run.plan.problems[-1]
left, right = st.columns([1.15, 1])
left.plotly_chart(plots.bandwidth_by_size(run), key="by_size")
right.plotly_chart(plots.rate_by_intensity(run, problem), key="roofline")
left.plotly_chart(plots.time_by_variant(run, problem), key="bars")
