"""The product's pages and routes over a rehearsed bench, for what no CPU can show at will: an H200, each failure, a long compile.

`REHEARSAL` names the stage; the product itself knows nothing of it.
"""

import os
import sys
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import rehearsed_bench  # noqa: E402
import replayed_tuning  # noqa: E402
import sample_runs  # noqa: E402

import kernelviz  # noqa: E402
import kernelviz.bench  # noqa: E402
from kernelviz.ui.server.index_page import middleware  # noqa: E402
from kernelviz.ui.server.routes import lifespan, routes  # noqa: E402

HOSTILE = "<img src=x onerror=alert(1)> **bold** :red[red] [link](javascript:alert(1)) $x$"

_STAGES = {
    "gpu": lambda: rehearsed_bench.RehearsedBench(
        (sample_runs.H200, sample_runs.CPU),
        case_s=0.05,
        compile_s=1.0,
        faults={"triton_two_passes": ("crash", "the worker died: signal 11 <b>SIGSEGV</b>")},
        roofs=sample_runs.H200_ROOFS,
        stored=(
            sample_runs.run(title="every rung"),
            sample_runs.mixed(),
            sample_runs.run(id="hostile", title=HOSTILE, shares={"torch_eager": 0.6, HOSTILE: 0.9}),
            sample_runs.run(
                id="sweep",
                op="add",
                sizes=[{"n": 2**e} for e in range(12, 29)],
                dtype="fp32",
                shares={"torch_eager": 0.95, "torch_compile": 0.94, "triton_block": 0.8, "cuda_vec16": 0.97},
            ),
            sample_runs.run(
                id="square",
                op="matmul",
                sizes=[{"m": s, "n": s, "k": s} for s in (512, 1024, 2048, 4096, 8192)],
                shares={"torch_eager": 1.2, "triton_grouped": 1.05, "cuda_naive": 0.01, "cuda_tiled": 0.04},
            ),
        ),
    ),
    "tuning": lambda: replayed_tuning.ReplayedTuning(
        Path(os.environ["TUNING"]), speed=float(os.environ.get("TUNING_SPEED", "10"))
    ),
    "cpu": lambda: rehearsed_bench.RehearsedBench(case_s=0.05, compile_s=0.4),
    "slow": lambda: rehearsed_bench.RehearsedBench(case_s=0.05, compile_s=120.0),
}
_bench = _STAGES[os.environ.get("REHEARSAL", "cpu")]()
kernelviz.bench.current = lambda: _bench

app = st.App(
    Path(kernelviz.__file__).parent / "ui" / "server" / "main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=middleware(),
)
