"""Estimates and intervals from blocks of samples (the method and its reasons: docs/measuring.md).

Samples inside a block share a clock, a temperature and an allocation, so the block, not the sample, is the unit that
is resampled. A t-test over pooled samples gives 80-95 % false alarms on drifting data. Under sustained load the blocks of one
pass share more, so there the pass is the unit. A bootstrap over the blocks of three passes covered 50-75 % instead of 95.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from kernelviz.core import Block, Figure
from kernelviz.core.result import half_width
from kernelviz.metrics.grouping import grouped

TRIM = 0.10
"""Share of a block's samples cut at each end before its mean is taken."""
RESAMPLES = 2000
MIN_BLOCKS = 10
"""A bootstrap interval of fewer blocks is too narrow, so none is given."""
LEAST_DIFFERENCE = 0.005
"""Differences below 0.5 % are called the same, whatever the interval says."""
BLOCKS_OF_A_PASS = 3
"""A round of a burst has one block of each series, a pass under sustained load has ten."""
FEWEST_PASSES = 3
"""No interval is given of fewer passes under sustained load."""

_SEED = 20261121  # Fixed, so that the same samples always give the same interval.

Floats = NDArray[np.float64]


def median(values: Sequence[float] | Floats) -> float:
    """The median of numbers none of which is NaN, equal to that of numpy, which takes ten times as long for a few dozen.

    >>> median([3.0, 1.0, 2.0]), median(np.array([4.0, 1.0, 2.0, 3.0]))
    (2.0, 2.5)
    """
    ordered, count = np.sort(np.asarray(values, dtype=np.float64)), len(values)
    return float(ordered[(count - 1) // 2] + ordered[count // 2]) / 2


def cut_at_each_end(count: int, trim: float = TRIM) -> int:
    """How many of `count` samples a trimmed mean leaves out at each end, rounded down.

    >>> cut_at_each_end(9), cut_at_each_end(12)
    (0, 1)
    """
    return int(count * trim)


def trimmed_mean(samples: Sequence[float] | Floats, trim: float = TRIM) -> float:
    """Mean after cutting `trim` of the samples at each end (rounded down: 1-9 samples lose none).

    >>> trimmed_mean([1.0] * 9 + [100.0])
    1.0
    """
    ordered = np.sort(np.asarray(samples, dtype=np.float64))
    cut = cut_at_each_end(len(ordered), trim)
    return float(ordered[cut : len(ordered) - cut].mean())


def block_means(samples: Sequence[float], blocks: Sequence[Block]) -> Floats:
    """The trimmed mean of each block, in order. The blocks' sizes must add up to the number of samples."""
    if sum(b.size for b in blocks) != len(samples):
        raise ValueError(f"blocks hold {sum(b.size for b in blocks)} samples, {len(samples)} were given")
    values = np.asarray(samples, dtype=np.float64)
    sizes = {b.size for b in blocks}
    if len(sizes) == 1:  # as one table: a run of 100 cases has 16,000 blocks
        (size,) = sizes
        cut = cut_at_each_end(size)
        means: Floats = np.sort(values.reshape(-1, size), axis=1)[:, cut : size - cut].mean(axis=1)
        return means
    ends = np.cumsum([b.size for b in blocks])
    return np.array([trimmed_mean(values[end - b.size : end]) for b, end in zip(blocks, ends, strict=True)])


def means_by_block(figure: Figure) -> Floats:
    """The value of each block of a figure, in order: its trimmed mean, or what is kept in place of its samples. Empty if samples
    or blocks are unknown."""
    if not figure.samples or not figure.blocks:
        return np.empty(0)
    if not figure.by_block:
        return block_means(figure.samples, figure.blocks)
    if len(figure.samples) != len(figure.blocks):
        raise ValueError(f"{len(figure.samples)} values of {len(figure.blocks)} blocks were given")
    return np.array(figure.samples)


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval; `low` and `high` are None below MIN_BLOCKS blocks."""

    estimate: float
    low: float | None
    high: float | None

    @property
    def half_width(self) -> float | None:
        """Half the interval, relative to the estimate."""
        return half_width(self.estimate, self.low, self.high)

    def inverse(self) -> "Interval":
        """The interval of the inverse of a ratio.

        >>> Interval(2.0, 1.0, 4.0).inverse()
        Interval(estimate=0.5, low=0.25, high=1.0)
        """
        return Interval(
            1 / self.estimate, None if self.high is None else 1 / self.high, None if self.low is None else 1 / self.low
        )


def median_interval(means: Sequence[float] | Floats) -> Interval:
    """Median of block means with a percentile bootstrap interval over blocks (Efron & Tibshirani 1993, ch. 13).

    >>> median_interval([2.0] * 12)
    Interval(estimate=2.0, low=2.0, high=2.0)
    >>> median_interval([1.0, 2.0, 3.0])
    Interval(estimate=2.0, low=None, high=None)
    """
    values = np.asarray(means, dtype=np.float64)
    estimate = median(values)
    if len(values) < MIN_BLOCKS:
        return Interval(estimate, None, None)
    low, high = np.quantile(_resampled_medians(values), [0.025, 0.975])
    return Interval(estimate, float(low), float(high))


def _resampled_medians(values: Floats, stream: int = 0) -> Floats:
    """The medians of RESAMPLES resamples with replacement, each as large as `values`; each `stream` has resamples of its own."""
    ordered = np.sort(values)
    lower, upper = _middle_ranks(len(values), stream)
    medians: Floats = (ordered[lower] + ordered[upper]) / 2
    return medians


# A resample consists of ranks, and which rank is in its middle does not depend on the values: with the fixed seed it is the same
# for every series of that many blocks. Without the cache, drawing the ranks was most of the cost of a comparison (4 ms for 40
# blocks).
@lru_cache(maxsize=512)
def _middle_ranks(count: int, stream: int) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """The ranks of the two middle elements (one, twice, of an odd count) of each of RESAMPLES draws of `count` from `count`."""
    upper, lower = count // 2, (count - 1) // 2
    ranks = np.random.default_rng((_SEED, stream)).integers(0, count, size=(RESAMPLES, count), dtype=np.int32)
    ranks.partition((lower, upper), axis=1)
    return ranks[:, lower].copy(), ranks[:, upper].copy()


def ratio_of_medians(means: Sequence[float] | Floats, to: Sequence[float] | Floats) -> Interval:
    """Median of one series over that of another, each resampled by itself (they share no rounds).

    >>> ratio_of_medians([3.0] * 12, [2.0] * 10), ratio_of_medians([3.0] * 12, [2.0] * 9)
    (Interval(estimate=1.5, low=1.5, high=1.5), Interval(estimate=1.5, low=None, high=None))
    """
    first, second = np.asarray(means, dtype=np.float64), np.asarray(to, dtype=np.float64)
    estimate = median(first) / median(second)
    if min(len(first), len(second)) < MIN_BLOCKS:
        return Interval(estimate, None, None)
    over, under = _resampled_medians(first, 0), _resampled_medians(second, 1)
    low, high = np.quantile(over / under, [0.025, 0.975])
    return Interval(estimate, float(low), float(high))


_T_975 = {2: 4.303, 3: 3.182, 4: 2.776, 5: 2.571, 6: 2.447, 7: 2.365, 8: 2.306}
"""Student's t, 97.5 %, by degrees of freedom."""


def _t_975(freedom: int) -> float:
    """Beyond the table by the first terms of its expansion, within 0.3 %."""
    return _T_975.get(freedom) or 1.96 + 2.37 / freedom + 2.8 / freedom**2


def passes_interval(means: Sequence[float] | Floats) -> Interval:
    """Geometric mean of passes with Student's interval of their logarithms: of three, a bootstrap would draw the same three.

    >>> passes_interval([2.0, 2.0, 2.0]), passes_interval([2.0, 2.0]).low is None
    (Interval(estimate=2.0, low=2.0, high=2.0), True)
    """
    logs = np.log(np.asarray(means, dtype=np.float64))
    return _student(logs.mean(), logs.var(ddof=1) / len(logs) if len(logs) > 1 else 0.0, len(logs))


def ratio_of_passes(means: Sequence[float] | Floats, to: Sequence[float] | Floats) -> Interval:
    """Geometric mean of one series of passes over that of another; they share none.

    >>> round(ratio_of_passes([3.0] * 3, [2.0] * 3).estimate, 12)
    1.5
    """
    first, second = (np.log(np.asarray(values, dtype=np.float64)) for values in (means, to))
    fewest = min(len(first), len(second))
    error = sum(float(v.var(ddof=1)) / len(v) for v in (first, second)) if fewest > 1 else 0.0
    return _student(first.mean() - second.mean(), error, fewest)


def _student(log: float, squared_error: float, passes: int) -> Interval:
    estimate = float(np.exp(log))
    if passes < FEWEST_PASSES:
        return Interval(estimate, None, None)
    half = _t_975(passes - 1) * float(np.sqrt(squared_error))
    return Interval(estimate, estimate * float(np.exp(-half)), estimate * float(np.exp(half)))


def in_passes(blocks: Sequence[Block] | None) -> bool:
    """Whether the rounds are passes under sustained load: each has many blocks, which are together one observation.

    Documents of November 2026 can contain some rounds of a baseline twice. Those are not passes.
    """
    rounds = [b.round for b in blocks or () if b.round is not None]
    return bool(rounds) and len(rounds) >= BLOCKS_OF_A_PASS * len(set(rounds))


def figure_interval(samples: Sequence[float], blocks: Sequence[Block]) -> Interval:
    """The estimate of a single time: median of trimmed block means, bootstrap over blocks; of passes `passes_interval`."""
    means = block_means(samples, blocks)
    return passes_interval([*_by_round(blocks, means).values()]) if in_passes(blocks) else median_interval(means)


def round_ratios(of: Figure, to: Figure) -> Floats:
    """Block mean of `of` over that of `to`, for each round in which both were measured.

    A ratio inside one round cancels what both shared: clock, temperature, neighbours.
    """
    first, second = _means_by_round(of), _means_by_round(to)
    shared = sorted(first.keys() & second.keys())
    return np.array([first[r] / second[r] for r in shared], dtype=np.float64)


def shared_medians(of: Figure, to: Figure) -> tuple[float, float] | None:
    """The medians of both series over the rounds in which both were measured; None if there are none."""
    first, second = _means_by_round(of), _means_by_round(to)
    shared = first.keys() & second.keys()
    return (median([first[r] for r in shared]), median([second[r] for r in shared])) if shared else None


# Each variant of a problem is compared with the same few figures: sorting their blocks each time was two thirds of a page.
@lru_cache(maxsize=64)
def _means_by_round(figure: Figure) -> dict[int, float]:
    if figure.samples is None or figure.blocks is None:
        return {}
    return _by_round(figure.blocks, means_by_block(figure))


def _by_round(blocks: Sequence[Block], means: Floats) -> dict[int, float]:
    rounds = grouped(zip(blocks, means, strict=True), key=lambda pair: pair[0].round)
    return {r: float(np.mean([mean for _, mean in of])) for r, of in rounds.items() if r is not None}


def unit_means(figure: Figure) -> Floats:
    """The values behind a figure's interval: the trimmed mean of each block or pass. Empty if blocks are unknown."""
    if in_passes(figure.blocks):
        return np.array([*_means_by_round(figure).values()])
    return means_by_block(figure)


def ratio_interval(of: Figure, to: Figure) -> tuple[Interval | None, int]:
    """The ratio inside shared rounds or passes, and their number; None if there are none.

    The interval also contains the ratio of the two medians over these rounds. It can lie outside the bootstrap interval if both
    series jump, but not in the same rounds: beside other work on a CPU, the ratio was 8.7 (3.7 to 11) for 4.1 ms against 1.4 ms.
    """
    ratios, medians = round_ratios(of, to), shared_medians(of, to)
    if not len(ratios) or medians is None:
        return None, 0
    interval = (passes_interval if in_passes(of.blocks) else median_interval)(ratios)
    if interval.low is None or interval.high is None:
        return interval, len(ratios)
    of_medians = medians[0] / medians[1]
    return Interval(interval.estimate, min(interval.low, of_medians), max(interval.high, of_medians)), len(ratios)


def opposed(ratio: float, of_times: float) -> bool:
    """Whether two ratios of one comparison, in its rounds and of the shown times, are on different sides of 1, each by more than
    LEAST_DIFFERENCE. Both are ratios of the same two times.

    >>> opposed(0.95, 1.22), opposed(1.02, 1.22), opposed(0.999, 1.001)
    (True, False, False)
    """
    return (ratio - 1) * (of_times - 1) < 0 and min(abs(math.log(ratio)), abs(math.log(of_times))) > LEAST_DIFFERENCE


@lru_cache(maxsize=2048)
def unpaired(time: Figure, other: Figure) -> Interval:
    """One time over another, each resampled over its own blocks or passes; without an interval if blocks are unknown."""
    first, second = unit_means(time), unit_means(other)
    if not len(first) or not len(second):
        return Interval(time.estimate / other.estimate, None, None)
    return (ratio_of_passes if in_passes(time.blocks) or in_passes(other.blocks) else ratio_of_medians)(first, second)


def fewest_blocks(*figures: Figure | None) -> int:
    """The number of blocks of the figure that has the fewest; 0 if blocks or samples are unknown."""
    return min((len(f.blocks) if f is not None and f.samples and f.blocks else 0 for f in figures), default=0)


def geometric_mean(values: Sequence[float]) -> float | None:
    """Geometric mean of positive numbers, None of none.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    return float(np.exp(np.mean(np.log(np.asarray(values, dtype=np.float64))))) if len(values) else None
