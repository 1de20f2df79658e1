"""The product's pages and routes over a bench that plays a selftest of an H200."""

import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import sample_figures  # noqa: E402
import sample_runs  # noqa: E402

import kernelviz  # noqa: E402
import kernelviz.bench  # noqa: E402
from kernelviz.ui.server.index_page import middleware  # noqa: E402
from kernelviz.ui.server.routes import lifespan, routes  # noqa: E402

_bench = sample_figures.SelftestedBench(
    (sample_runs.H200, sample_runs.CPU), roofs=sample_runs.H200_ROOFS, stored=(sample_figures.run(),)
)
_bench.kept, _bench.pace_s = sample_figures.selftest(id="selftest-before"), 0.4
kernelviz.bench.current = lambda: _bench

app = st.App(
    Path(kernelviz.__file__).parent / "ui" / "server" / "main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=middleware(),
)
