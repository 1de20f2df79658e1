"""Intervals and quality levels, judged by repetition on H200 and H100 and by planted causes (docs/measuring.md has the rates)."""

from __future__ import annotations

import shutil
from pathlib import Path

import numpy as np
import pytest
import repeats

from kernelviz.core import Block, Failure, Figure
from kernelviz.formats import shipped_runs
from kernelviz.metrics.quality import quality
from kernelviz.metrics.uncertainty import uncertainty, with_uncertainty


@pytest.mark.parametrize(("card", "count"), [("h200", 540), ("h100", 270)])
def test_of_good_times_95_percent_are_confirmed_by_a_second_process(card: str, count: int) -> None:
    good = list(repeats.good_pairs(repeats.repeated(card)))
    confirmed = [repeats.inside(repeats.shown(r.first), repeats.shown(r.second)) for r in good]
    assert len(good) >= count
    assert np.mean(confirmed) >= 0.95
    # The bootstrap alone does not know what differs between processes.
    assert np.mean([repeats.inside(r.first, r.second) for r in good]) < 0.90


def test_two_folders_of_recorded_runs_are_judged_in_the_same_way(tmp_path: Path) -> None:
    """Here both are the same run, so each case is confirmed; runs of two cards are refused."""
    name = "h200-softmax"
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        shutil.copy(Path(str(shipped_runs.folder() / f"{name}.kvz")), tmp_path / folder)
    cases = repeats.cases_of(tmp_path / "a", tmp_path / "b")
    run = shipped_runs.load(name)
    assert len(cases) == sum(not isinstance(r.outcome, Failure) for r in run.results)
    pairs = repeats.figures_of(cases)
    assert all(repeats.inside(r.first, r.second) for r in repeats.good_pairs(pairs))
    first = next(r.timing.device_cold_s for r in run.results if r.timing is not None)
    assert first is not None
    assert abs(pairs[0].first.estimate / first.estimate - 1) < 1e-3
    shutil.copy(Path(str(shipped_runs.folder() / "h100-80gb-hbm3-softmax.kvz")), tmp_path / "b" / f"{name}.kvz")
    with pytest.raises(ValueError, match="two devices"):
        repeats.cases_of(tmp_path / "a", tmp_path / "b")


def test_at_most_3_percent_are_suspect_on_a_quiet_gpu() -> None:
    pairs = [pair for card in repeats.RECORDED for pair in repeats.repeated(card)]
    levels = [repeats.level(f) for r in pairs for f in (r.first, r.second)]
    for name in shipped_runs.names():
        run = shipped_runs.load(name)
        of_run = (quality(r, headline, run.method.clock) for r in run.results for headline in ("cold", "warm"))
        levels += [rated.level for rated in of_run if rated is not None]
    assert len(levels) > 2000
    assert levels.count("suspect") / len(levels) <= 0.03


def test_planted_biases_above_the_interval_are_missed_in_at_most_5_percent() -> None:
    missed = [miss for _, counts, miss in repeats.planted() if counts]
    assert len(missed) > 2000
    assert np.mean(missed) <= 0.05


def test_every_part_of_the_interval_has_its_cause() -> None:
    """A time with a tracing correction and two buffers has more parts than one by the host's clock."""
    steady = repeats.figure([1e-4, 1.001e-4] * 20, size=1, buffers=4, correction_s=5e-6)
    parts = uncertainty(steady)
    assert parts is not None
    # 1.1 us of a graph of 7 calls; a prior of 0.24 % between processes; half a tick of 32 ns.
    assert parts.tracing == 1.96 * 1.1e-6 / 7 / steady.estimate
    assert 0.002 < parts.buffers < 0.008
    assert parts.ticks == 32e-9 / 2 / steady.estimate
    shown = repeats.half(repeats.shown(steady))
    assert abs(shown / parts.half_width - 1) < 0.02


def test_an_interval_of_every_possible_width_has_ends() -> None:
    """A document may say 1e-12 s, at most 1 s."""
    blocks = tuple(Block(size=2, started_s=float(i)) for i in range(10))
    widest = Figure(estimate=1e-12, low=1e-12, high=1.0, samples=(1e-12,) * 20, blocks=blocks, timer="cupti")
    shown = with_uncertainty(widest)
    assert shown.low is not None
    assert shown.high is not None
    assert 0 < shown.low <= 1e-12
    assert 1.0 <= shown.high <= 1e9
