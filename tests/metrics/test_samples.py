"""Samples in the order in which they were taken: their blocks, marks, quantiles and drift."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
import sample_figures as figures
import sample_runs as samples

from kernelviz.core.result import Block, Figure, Result, Timing
from kernelviz.metrics.drift import drift
from kernelviz.metrics.figures import Extent, extent
from kernelviz.metrics.samples import BY_MEDIAN, by_block, in_order, records, spread
from kernelviz.tables.spreads import SPREADS, SpreadOfCase
from kernelviz.text.samples import SAMPLED_FIGURES, describe_drift, describe_repeats, describe_spread

EXTENTS = [column for column in SPREADS if column.title in ("Min", "Mean", "Max")]


def one(figure: Figure | None, **more: Figure) -> Result:
    problem = samples.problems("add", [{"n": 4096}], "fp32")[0]
    return msgspec.structs.replace(
        samples.timed(problem, "torch_eager", 0.9), outcome=Timing(device_cold_s=figure, **more)
    )


def test_blocks_stand_by_their_start_and_those_taken_again_are_marked() -> None:
    starts = {0: 0.0, 1: 0.40, 2: 0.02, 3: 0.03}
    blocks = tuple(
        Block(size=2, started_s=100 + s, round=r, clock_hz=1.9e9 if r == 3 else 2e9) for r, s in starts.items()
    )
    found = in_order(Figure(estimate=1.0, samples=(1, 2, 30, 40, 5, 6, 7, 8), blocks=blocks), "device_cold_s")
    assert found is not None
    assert list(found.samples_s) == [1, 2, 5, 6, 7, 8, 30, 40]
    assert list(found.middles_s) == [1.5, 5.5, 7.5, 35.0]
    assert list(found.started_s) == pytest.approx([0, 0.02, 0.03, 0.4])
    assert list(found.again) == [False, False, False, True]
    assert list(found.slow) == [False, False, True, False]
    assert found.pauses == ((3, pytest.approx(0.37)),)


def test_a_second_task_is_no_repeat_and_rounds_that_two_series_share_are_none() -> None:
    blocks = tuple(Block(size=1, started_s=t, round=r) for r, t in ((5, 0.0), (5, 0.1), (6, 0.2), (900, 30.0)))
    found = in_order(Figure(estimate=1.0, samples=(1.0,) * 4, blocks=blocks), "device_cold_s")
    assert found is not None
    assert not found.again.any()
    assert found.pauses == ((3, pytest.approx(29.8)),)


def test_figures_by_the_hosts_clock_rest_on_medians_as_their_interval_does() -> None:
    figure = Figure(
        estimate=1.0, samples=(1.0, 1.0, 9.0), blocks=(Block(size=3, started_s=0.0),), timer="host", launch="call"
    )
    medians, means = in_order(figure, "call_eager_s"), in_order(figure, "device_cold_s")
    assert medians is not None
    assert means is not None
    assert (medians.middles_s[0], means.middles_s[0]) == (1.0, pytest.approx(11 / 3))


def test_what_is_not_known_is_none() -> None:
    assert in_order(Figure(estimate=1.0), "device_cold_s") is None
    assert spread(one(Figure(estimate=1.0)), "device_cold_s") is None
    assert spread(one(samples.figure(1e-6)), "loop_s") is None
    assert spread(samples.failed(one(None).problem, "torch_eager", "wrong"), "device_cold_s") is None
    found = spread(one(Figure(estimate=1.0, samples=(1.0, 2.0))), "device_cold_s")
    assert found is not None
    assert (found.blocks, found.lag_1, found.low_clock_hz, found.drift.kind) == (None, None, None, "unknown")
    words = {str(line) for line in describe_spread(found)}
    assert {"2 samples blocks unknown", "SM clock unknown", "no block discarded"} & words >= {
        "2 samples blocks unknown",
        "SM clock unknown",
    }


def test_every_figure_has_its_words_and_calls_say_nothing_of_repeats() -> None:
    result = figures.run().results[0]
    for asked in SAMPLED_FIGURES:
        found = spread(result, asked.field)
        assert found is not None, asked.name
        by_host = asked.field in BY_MEDIAN
        assert len(describe_spread(found)) == (7 if by_host else 8)
        assert (describe_repeats(found) is None) is by_host
    assert set(BY_MEDIAN) == {"call_eager_s", "enqueue_s", "call_graph_s", "loop_s"}
    assert {f.field for f in SAMPLED_FIGURES} >= {
        "device_cold_s",
        "device_warm_s",
        "call_eager_s",
        "enqueue_s",
        "loop_s",
    }


def test_the_extent_is_that_of_all_samples_and_unknown_where_only_means_are_stored() -> None:
    samples_s = (3.0, 1.0, 2.0, 10.0)
    figure = Figure(estimate=2.5, samples=samples_s, blocks=(Block(size=4, started_s=0.0),))
    found = spread(one(figure), "device_cold_s")
    assert found is not None
    assert found.extent == Extent(min(samples_s), sum(samples_s) / 4, max(samples_s))
    assert "minimum 1.000 s, mean 4.000 s, maximum 10.00 s" in map(str, describe_spread(found))
    small = by_block(figures.run())
    stored = small.results[0].timing
    assert stored is not None
    assert stored.device_cold_s is not None
    assert stored.device_cold_s.by_block
    assert extent(stored.device_cold_s) == extent(figures.run().results[0].timing.device_cold_s)  # type: ignore[union-attr]
    without = msgspec.structs.replace(stored.device_cold_s, extent_s=msgspec.UNSET)  # as documents of before 2026-11-27
    assert extent(without) is None
    unknown = spread(one(without), "device_cold_s")
    assert unknown is not None
    assert "minimum, mean and maximum unknown: only the mean of each block is stored" in map(
        str, describe_spread(unknown)
    )
    assert all(column.value(SpreadOfCase(one(without), "device cold", unknown)) is None for column in EXTENTS)


def noise(count: int, seed: int, correlation: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drawn = rng.normal(0, 0.01, count + 50)
    for i in range(1, len(drawn)):
        drawn[i] = correlation * drawn[i - 1] + drawn[i] * (1 - correlation**2) ** 0.5
    return 1 + drawn[50:]


def test_noise_does_not_drift_also_where_neighbours_resemble_each_other() -> None:
    for correlation, most in ((0.0, 3), (0.5, 15)):
        found = [drift(noise(100, seed, correlation)).kind in ("up", "down") for seed in range(200)]
        assert sum(found) <= most, correlation


@pytest.mark.parametrize(("ramp", "word"), [(0.03, "up"), (-0.03, "down")])
def test_a_ramp_is_found_with_its_sign_and_size(ramp: float, word: str) -> None:
    found = drift(noise(100, 1) * (1 + ramp * np.arange(100) / 100))
    assert found.kind == word
    assert found.change == pytest.approx(ramp * 2 / 3, abs=0.006)
    assert str(describe_drift(found)).startswith(f"drifts {word}: {'+' if ramp > 0 else '-'}")


def test_a_trend_below_the_least_difference_is_small() -> None:
    found = drift(1 + 0.003 * np.arange(100) / 100)
    assert found.kind == "small"
    assert "too small to matter" in str(describe_drift(found))


def test_a_line_a_sample_with_its_block() -> None:
    result = figures.run().results[0]
    assert result.timing is not None
    figure = result.timing.device_cold_s
    assert figure is not None
    assert figure.samples is not None
    lines = records(result, ("device_cold_s", "loop_s"))
    cold = [line for line in lines if line["figure"] == "device_cold_s"]
    assert [line["time_s"] for line in cold] == list(figure.samples)
    assert [line["block"] for line in cold[:21]] == [0] * 20 + [1]
    assert cold[20]["started_s"] == 0.01
    assert {line["figure"] for line in lines} == {"device_cold_s", "loop_s"}
