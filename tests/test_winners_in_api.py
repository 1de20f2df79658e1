"""Winners and samples of a run in Python."""

from __future__ import annotations

import pytest
import sample_figures as figures
import sample_runs as samples

import kernelviz as kv
from kernelviz.core.errors import UnknownName


def test_a_row_a_size_with_the_fastest_the_second_and_whether_that_is_decided() -> None:
    run = samples.run()
    frame = kv.Report.of(run).winners()
    assert list(frame.n) == [p.sizes["n"] for p in run.plan.problems]
    assert set(frame.fastest) == {"triton_persistent"}
    assert frame.decided.all()
    assert (frame.time_s < frame.second_time_s).all()
    assert (frame.ratio_low <= frame.ratio).all()
    assert list(frame.tied) == [()] * 6
    nobody = kv.Report.of(run).winners("warm")
    assert nobody.fastest.isna().all()
    with pytest.raises(UnknownName):
        kv.Report.of(run).winners("hot")


def test_a_row_a_sample_in_seconds() -> None:
    run = figures.run()
    report = kv.Report.of(run)
    frame = report.samples("call_eager_s")
    assert len(frame) == 12 * 1000
    timing = run.results[0].timing
    assert timing is not None
    assert timing.call_eager_s is not None
    first = frame[(frame.variant == "torch_eager") & (frame.n == 4096)]
    assert tuple(first.time_s) == timing.call_eager_s.samples
    assert first.block.max() == 19
    assert len(report.samples()) == 12 * 480
    assert kv.Report.of(samples.mixed()).samples("loop_s").empty
    with pytest.raises(UnknownName):
        report.samples("loop")
