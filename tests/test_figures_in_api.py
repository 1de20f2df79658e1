"""The frame of a run in Python has every figure, in SI units, and the trust line."""

from __future__ import annotations

import msgspec
import pandas as pd
import pytest
import sample_figures as figures
import sample_runs as samples

import kernelviz as kv
from kernelviz.core.result import Energy

COLUMNS = (
    "warm_s", "call_eager_s", "call_eager_p90_s", "call_eager_p99_s", "enqueue_s", "call_graph_s", "loop_s", "busy_s",
)  # fmt: skip


def test_every_figure_is_a_column_of_seconds() -> None:
    run = figures.run()
    frame = kv.Report.of(run).to_frame()
    for row, result in zip(frame.itertuples(), run.results, strict=True):
        timing = result.timing
        assert timing is not None
        assert timing.device_warm_s is not None
        assert timing.loop_s is not None
        assert (row.warm_s, row.loop_s) == (timing.device_warm_s.estimate, timing.loop_s.estimate)
        assert row.time_s == row.busy_s
        assert row.call_eager_s < row.call_eager_p90_s < row.call_eager_p99_s
    assert list(frame.host_bound[:3]) == [True] * 3
    assert list(frame.host_bound[-3:]) == [False] * 3
    assert frame.trust.iloc[0].startswith("✓ good · 480 samples")
    assert frame.trust.iloc[-1].startswith("◐ note")
    assert frame.energy_joules.isna().all()


def test_what_was_not_measured_is_nothing() -> None:
    frame = kv.Report.of(samples.mixed()).to_frame()
    assert set(COLUMNS) <= set(frame.columns)
    assert frame.warm_s.isna().all()
    assert all(pd.isna(bound) for bound in frame.host_bound)
    assert (frame[frame.failure == "compile"].trust == "not timed").all()


def test_energy_is_that_of_one_call() -> None:
    run = figures.run()
    energy = Energy(joules=0.021, calls=100_000, seconds=2.1)
    first = msgspec.structs.replace(
        run.results[0], outcome=msgspec.structs.replace(run.results[0].outcome, energy=energy)
    )
    frame = kv.Report.of(msgspec.structs.replace(run, results=(first, *run.results[1:]))).to_frame()
    assert frame.energy_joules.iloc[0] == pytest.approx(0.021)
