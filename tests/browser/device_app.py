"""The pages of the product with a bench whose simulated H200 reports a load, for the page Device."""

import sys
import time
from pathlib import Path

import streamlit as st

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

import sample_device  # noqa: E402

import kernelviz  # noqa: E402
import kernelviz.bench  # noqa: E402
from kernelviz.core.device_sample import Sample  # noqa: E402
from kernelviz.ui.server.index_page import middleware  # noqa: E402
from kernelviz.ui.server.routes import lifespan, routes  # noqa: E402

_begun_s = time.time() - 900


class _Playing(sample_device.PlayedMonitor):
    """A quarter of an hour so far, and a sample more each second."""

    def look(self, device_id: str) -> tuple[Sample, ...]:
        seconds = int(time.time() - _begun_s)
        if device_id == "cpu":
            return tuple(sample_device.cpu_sample(s) for s in range(seconds))
        return tuple(sample_device.gpu_sample(s, running=700 < s < 780, at_s=_begun_s + s) for s in range(seconds))


_bench = sample_device.DeviceBench()
_bench.machine._monitor = _Playing(_bench.devices(), {})
kernelviz.bench.current = lambda: _bench

app = st.App(
    Path(kernelviz.__file__).parent / "ui" / "server" / "main.py",
    lifespan=lifespan,
    routes=routes(),
    middleware=middleware(),
)
