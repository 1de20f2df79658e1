"""The statistics on simulated data with known true values."""

import msgspec
import numpy as np
import pytest

from kernelviz.core.result import Block, Figure
from kernelviz.metrics.statistics import (
    _SEED,
    LEAST_DIFFERENCE,
    RESAMPLES,
    Interval,
    _resampled_medians,
    _t_975,
    block_means,
    figure_interval,
    median_interval,
    ratio_interval,
    round_ratios,
    trimmed_mean,
    unpaired,
)
from kernelviz.metrics.verdict_reasons import FewSharedRounds, FloorTooWide, NoSharedRounds
from kernelviz.metrics.verdicts import judged, noise_floor, verdict, verdict_apart
from kernelviz.metrics.winner import compared


def figure(
    means: list[float], rounds: list[int] | None = None, size: int = 10, noise: float = 0.001, seed: int = 0
) -> Figure:
    rng = np.random.default_rng(seed)
    samples = [float(x) for m in means for x in m * rng.normal(1, noise, size)]
    numbers = rounds if rounds is not None else list(range(len(means)))
    blocks = tuple(Block(size=size, started_s=float(i), round=r) for i, r in enumerate(numbers))
    interval = figure_interval(samples, blocks)
    return Figure(
        estimate=interval.estimate, low=interval.low, high=interval.high, samples=tuple(samples), blocks=blocks
    )


def test_the_interval_covers_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(200):
        interval = median_interval(rng.normal(10.0, 0.1, 30))
        assert interval.low is not None
        assert interval.high is not None
        hits += interval.low <= 10.0 <= interval.high
    assert 180 <= hits <= 200


def passes(rng: np.random.Generator, level: float, spread: float, count: int = 3) -> Figure:
    """Ten blocks after each load. The passes differ by at least as much as the blocks do."""
    logs = np.repeat(spread * rng.standard_normal(count), 10) + 0.001 * rng.standard_normal(10 * count)
    samples = [float(x) for x in level * np.exp(logs)]
    blocks = tuple(Block(size=1, started_s=float(i), round=i // 10) for i in range(10 * count))
    made = figure_interval(samples, blocks)
    return Figure(estimate=made.estimate, low=made.low, high=made.high, samples=tuple(samples), blocks=blocks)


@pytest.mark.parametrize("spread", [0.001, 0.005, 0.02])
def test_intervals_of_passes_cover_the_truth_and_equal_ones_are_not_told_apart(spread: float) -> None:
    """A bootstrap over their blocks covered 50 to 75 %, and gave a false verdict for up to 5 % of equal pairs."""
    rng = np.random.default_rng(4)
    alone = together = between = wrong = 0
    for _ in range(300):
        base, again, other = (passes(rng, 1e-5, spread) for _ in range(3))
        alone += (base.low or 9) <= 1e-5 <= (base.high or 0)
        ratio, count = ratio_interval(other, base)
        assert ratio is not None
        assert count == 3
        together += (ratio.low or 9) <= 1 <= (ratio.high or 0)
        apart = unpaired(other, base)
        between += (apart.low or 9) <= 1 <= (apart.high or 0)
        wrong += verdict(other, base, again).kind in ("faster", "slower")
    assert 275 <= alone <= 298
    assert 275 <= together <= 298
    assert 280 <= between <= 300
    assert wrong <= 4


def test_two_passes_give_no_interval_and_five_a_narrower_one_than_three() -> None:
    rng = np.random.default_rng(2)
    assert passes(rng, 1e-5, 0.01, 2).low is None
    widths = [np.mean([passes(rng, 1e-5, 0.01, n).half_width for _ in range(50)]) for n in (3, 5, 12)]
    assert widths[0] > 1.5 * widths[1] > 2 * widths[2]


@pytest.mark.parametrize(("freedom", "t"), [(2, 4.303), (8, 2.306), (9, 2.262), (12, 2.179), (30, 2.042)])
def test_students_t(freedom: int, t: float) -> None:
    assert _t_975(freedom) == pytest.approx(t, rel=0.003)


def test_a_verdict_is_the_same_whichever_side_is_held_against_the_other() -> None:
    for estimate, floor in ((0.905, 0.1), (0.962, 0.04), (0.99, 0.005), (0.996, 0.005)):
        one = judged(Interval(estimate, estimate * 0.999, estimate * 1.001), floor, 20)
        back = judged(Interval(1 / estimate, 1 / estimate / 1.001, 1 / estimate / 0.999), floor, 20)
        turned = {"faster": "slower", "slower": "faster"}
        assert back.kind == turned.get(one.kind, one.kind)


def test_what_differs_from_itself_by_more_than_two_percent_is_called_the_same_as_nothing() -> None:
    inside = Interval(1.0, 0.99, 1.01)
    assert judged(inside, 0.02, 20).kind == "same"
    noisy = judged(inside, 0.084, 20)
    assert (noisy.kind, noisy.reason) == ("unclear", FloorTooWide(pytest.approx(0.084, abs=0.0005)))
    assert judged(Interval(1.2, 1.15, 1.25), 0.084, 20).kind == "slower"


def test_one_outlier_in_ten_does_not_move_a_block() -> None:
    assert trimmed_mean([1.0] * 19 + [50.0]) == 1.0


def test_blocks_must_account_for_every_sample() -> None:
    with pytest.raises(ValueError, match="blocks hold 3 samples, 4 were given"):
        block_means([1.0] * 4, [Block(size=3, started_s=0.0)])


def test_ratios_pair_rounds_and_ignore_the_others() -> None:
    late = figure([2.0] * 5, rounds=[10, 11, 12, 13, 14], noise=0)
    base = figure([4.0] * 12, rounds=list(range(12)), noise=0)
    assert round_ratios(late, base).tolist() == [0.5, 0.5]


def test_shared_drift_cancels_in_ratios() -> None:
    drift = [1 + 0.05 * i for i in range(20)]
    base, slow = figure(drift), figure([1.01 * d for d in drift], seed=1)
    assert verdict(slow, base).kind == "slower"


def test_the_interval_of_a_ratio_contains_that_of_the_medians() -> None:
    """Both series jump, in other rounds: in most rounds the ratio is 9, but the medians are 9 against 4."""
    base = figure([1.0] * 60 + [4.0] * 60 + [4.0] * 80, noise=0)
    slow = figure([9.0] * 60 + [36.0] * 60 + [9.0] * 80, noise=0)
    of_medians = slow.estimate / base.estimate
    interval, _ = ratio_interval(slow, base)
    assert interval is not None
    assert (interval.estimate, interval.high) == (9.0, 9.0)
    assert interval.low == of_medians == 2.25
    assert median_interval(round_ratios(slow, base)).low == 9.0


def test_verdict_is_unclear_with_too_few_rounds() -> None:
    found = verdict(figure([1.0] * 4), figure([2.0] * 4))
    assert (found.kind, found.rounds) == ("unclear", 4)
    assert found.reason == FewSharedRounds(4, 10)


@pytest.mark.parametrize(("time_s", "kind", "apart"), [(1.1e-6, "unclear", "unclear"), (100e-6, "faster", "faster")])
def test_a_time_of_graphs_and_one_of_the_stream_differ_by_what_graphs_add(time_s: float, kind: str, apart: str) -> None:
    """A call of 1.1 us takes up to 0.14 us longer in a graph, so 5 % less in the stream says nothing about it."""
    in_stream = msgspec.structs.replace(figure([0.95 * time_s] * 20, seed=1), launch="stream")
    in_graph = msgspec.structs.replace(figure([time_s] * 20, seed=2), launch="graph")
    alike = msgspec.structs.replace(in_graph, launch="stream")
    assert verdict(in_stream, alike).kind == compared(in_stream, alike, alike, None).kind == "faster"
    assert verdict(in_stream, in_graph).kind == compared(in_stream, in_graph, alike, None).kind == kind
    assert verdict_apart(in_stream, alike).kind == "faster"
    assert verdict_apart(in_stream, in_graph).kind == apart


def test_verdict_without_samples_is_unclear() -> None:
    assert verdict(Figure(estimate=1.0), Figure(estimate=2.0)).reason == NoSharedRounds()


def test_a_noisy_baseline_raises_the_floor() -> None:
    base = figure([1.0] * 20, noise=0.0)
    again = figure([1.0 + 0.03 * (-1) ** i for i in range(20)], noise=0.0)
    assert noise_floor(base, again) == pytest.approx(0.03, rel=0.1)
    assert noise_floor(base, None) == LEAST_DIFFERENCE
    assert verdict(figure([0.98] * 20, noise=0.0), base, again).kind != "faster"


def test_differences_under_half_a_percent_are_the_same() -> None:
    found = verdict(figure([1.002] * 20, noise=1e-5), figure([1.0] * 20, noise=1e-5, seed=2))
    assert found.kind == "same"
    assert found.speed_up == pytest.approx(1 / 1.002, rel=1e-4)


def test_false_verdicts_on_equal_calls_are_rare() -> None:
    wrong = 0
    for seed in range(100):
        rng = np.random.default_rng(seed)
        drift = np.cumsum(rng.normal(0, 0.002, 12)) + 1
        series = [
            figure([float(d * rng.normal(1, 0.002)) for d in drift], noise=0.004, seed=1000 * k + seed)
            for k in range(3)
        ]
        wrong += verdict(series[0], series[1], series[2]).kind in ("faster", "slower")
    assert wrong <= 1


@pytest.mark.parametrize("count", [10, 11, 40, 41, 170])
def test_resampled_medians_are_those_of_the_drawn_values(count: int) -> None:
    values = np.round(np.random.default_rng(count).normal(1.0, 0.01, count), 3)  # with ties
    for stream in (0, 1):
        ranks = np.random.default_rng((_SEED, stream)).integers(0, count, size=(RESAMPLES, count), dtype=np.int32)
        assert np.array_equal(_resampled_medians(values, stream), np.median(np.sort(values)[ranks], axis=1))
    assert not np.array_equal(_resampled_medians(values, 0), _resampled_medians(values, 1))


def test_equal_blocks_have_the_means_that_each_has_by_itself() -> None:
    samples = np.random.default_rng(1).normal(1.0, 0.1, 120).tolist()
    for size in (1, 5, 12, 30):
        blocks = [Block(size=size, started_s=0.0)] * (120 // size)
        each = [trimmed_mean(samples[i : i + size]) for i in range(0, 120, size)]
        assert block_means(samples, blocks) == pytest.approx(each, rel=1e-15)
