"""Whether the blocks of a time agree on one level, or form two groups: one after the other, or mixed.

A median over two groups lies at one of them or between them, so another measurement may give another level. An interval from
the same blocks does not say so when one group is small.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from kernelviz.core import Figure
from kernelviz.metrics.statistics import MIN_BLOCKS, Floats, in_passes, means_by_block, median, round_ratios

LEAST_Z = 3.3
"""A change in time counts only if the rank sums before and after it differ by so many standard errors. The largest of the
splits of a series of noise does so in 3 % of the series. The effect must be large as well."""
LEAST_STEP = 0.02
"""Levels that differ by less are one level: a difference within it is part of the interval (metrics.uncertainty)."""
WIDTHS = 3.0
"""Two levels differ if their distance is more than this many half-widths of its own 95 % interval."""
FEWEST, SHARE = 3, 0.15
"""Before and after a change are at least so many blocks, and this share of them. Fewer cannot move the median by its interval."""
GAP, WIDE_GAP, MANY_BLOCKS, MIXED_SHARE = 4.0, 10.0, 20, 0.25
"""Mixed groups: the gap between them is wider than GAP standard deviations inside either, and the smaller one has at least this
share of the blocks. Fewer than MANY_BLOCKS often have such a gap by chance, so theirs must be wider than WIDE_GAP. A change in
time in so few blocks needs a gap of GAP as well."""

MOST_ROUNDS = 0.9
"""Two times that changed share at least this part of their blocks, so that their ratio holds at both levels."""

StabilityKind = Literal["stable", "change", "two groups", "unknown"]


@dataclass(frozen=True, slots=True)
class Stability:
    """Whether a time has one level. `levels_s` and `blocks` describe both levels, in the order of time for a "change", the lower
    one first for "two groups"; None if there is one level. `change`: by how much the median differs from the levels before and
    after the most likely change, whichever is further (a logarithm); 0 if no change is significant."""

    kind: StabilityKind
    levels_s: tuple[float, float] | None = None
    blocks: tuple[int, int] | None = None
    change: float = 0.0

    @property
    def unstable(self) -> bool:
        return self.levels_s is not None


UNKNOWN = Stability("unknown")


def stability_of_means(means: Sequence[float] | Floats) -> Stability:
    """The stability of a series of block means in the order of time; unknown below 10 blocks.

    A change in time is found by the largest of the rank sum statistics (Wilcoxon) of all splits (cf. Pettitt 1979). It is reduced
    if neighbouring blocks resemble each other: by the root of (1 - r) / (1 + r), where r is the lag-1 rank correlation about the
    two levels. Mixed groups are found by the widest gap between the sorted means.

    >>> stability_of_means([1.0, 1.01] * 15 + [2.0, 2.01] * 6).levels_s
    (1.005, 2.005)
    >>> stability_of_means([1.0, 1.01] * 15).kind, stability_of_means([1.0, 1.01, 2.0, 2.01] * 8).kind
    ('stable', 'two groups')
    """
    values = np.asarray(means, dtype=np.float64)
    if len(values) < MIN_BLOCKS or not np.all(values > 0):
        return UNKNOWN
    logs = np.log(values)
    split = _change(logs)
    change = 0.0
    if split is not None:
        before, after = logs[:split], logs[split:]
        change = max(abs(median(logs) - median(part)) for part in (before, after))
        if _differ(before, after):
            return _two_levels("change", values[:split], values[split:], change)
    order = np.sort(values)
    at = _gap(np.log(order))
    if at is not None and _differ(np.log(order[:at]), np.log(order[at:])):
        return _two_levels("two groups", order[:at], order[at:], change)
    return Stability("stable", change=change)


def stability(figure: Figure) -> Stability:
    """The stability of a time. Unknown without blocks, and under sustained load, where a pass is one observation."""
    if not figure.samples or not figure.blocks or in_passes(figure.blocks):
        return UNKNOWN
    # The interval does not matter here, so a time and the same time with a wider interval share an entry of the cache.
    return _of_series(
        Figure(estimate=1.0, samples=figure.samples, blocks=figure.blocks, percentiles_s=figure.percentiles_s)
    )


@lru_cache(maxsize=4096)
def _of_series(series: Figure) -> Stability:
    """As `stability`. The cache holds the times of several recorded runs."""
    return stability_of_means(_in_time(series))


def level_decides(time: Figure, other: Figure) -> bool:
    """Whether one of two times is not stable, so that its level decides which of them is shorter."""
    if not stability(time).unstable and not stability(other).unstable:
        return False
    ratios = round_ratios(time, other)
    if len(ratios) >= MOST_ROUNDS * max(len(time.blocks or ()), len(other.blocks or ())):
        return stability_of_means(ratios).unstable  # Both changed together, which their ratios cancel.
    return levels_overlap(time, other)


def levels_overlap(time: Figure, other: Figure) -> bool:
    """Whether one of two times is not stable, and which of them is shorter depends on the level that counts."""
    first, second = stability(time), stability(other)
    if not first.unstable and not second.unstable:
        return False
    levels, other_levels = first.levels_s or (time.estimate,), second.levels_s or (other.estimate,)
    return min(levels) <= max(other_levels) and min(other_levels) <= max(levels)


def levels_differ(first: Sequence[float] | Floats, second: Sequence[float] | Floats) -> bool:
    """Whether the means of two groups of blocks have different levels. False if either has fewer than FEWEST blocks."""
    if min(len(first), len(second)) < FEWEST or min(*first, *second) <= 0:
        return False
    return _differ(np.log(np.asarray(first, dtype=np.float64)), np.log(np.asarray(second, dtype=np.float64)))


def _in_time(figure: Figure) -> Floats:
    return means_by_block(figure)[np.argsort([b.started_s for b in figure.blocks or ()], kind="stable")]


def _two_levels(kind: StabilityKind, first: Floats, second: Floats, change: float) -> Stability:
    levels = median(first), median(second)
    return Stability(kind, levels, (len(first), len(second)), change)


def _change(logs: Floats) -> int | None:
    """The number of blocks before the most likely change, if it is significant."""
    count = len(logs)
    least = min(max(FEWEST, math.ceil(SHARE * count)), count // 2)
    splits = np.arange(least, count - least + 1)
    apart = np.maximum(_least_after(logs) - _most_before(logs), _least_after(-logs) - _most_before(-logs))[splits - 1]
    split = int(splits[np.argmax(apart)])
    inside = max(_deviation(logs[:split]), _deviation(logs[split:])) if count < MANY_BLOCKS else 0.0
    if apart.max() > GAP * inside:
        return split  # Every block after it is longer (or shorter) than every block before it.
    _, place, ties = np.unique(logs, return_inverse=True, return_counts=True)
    ranks = (np.cumsum(ties) - (ties - 1) / 2)[place]
    sums = np.abs(2 * np.cumsum(ranks) - np.arange(1, count + 1) * (count + 1))[splits - 1]
    scores = sums / np.sqrt(splits * (count - splits) * (count + 1) / 3)
    split = int(splits[np.argmax(scores)])
    alike = _neighbours(np.concatenate([part - median(part) for part in (logs[:split], logs[split:])]))
    return split if float(scores.max()) * math.sqrt((1 - alike) / (1 + alike)) > LEAST_Z else None


def _most_before(logs: Floats) -> Floats:
    """For each split: the largest value before it."""
    return np.maximum.accumulate(logs)[:-1]


def _least_after(logs: Floats) -> Floats:
    """For each split: the smallest value after it."""
    return np.minimum.accumulate(logs[::-1])[::-1][1:]


def _neighbours(off: Floats) -> float:
    """The correlation of the ranks of each block with the next, at least 0: a rank is not moved by one long block."""
    ranks = np.argsort(np.argsort(off)).astype(np.float64)
    ranks -= ranks.mean()
    whole = float((ranks * ranks).sum())
    return min(max(float((ranks[:-1] * ranks[1:]).sum()) / whole, 0.0), 0.9) if whole else 0.0


def _gap(ordered: Floats) -> int | None:
    """The number of blocks below the widest gap in the sorted logarithms, if it divides them into two clear groups."""
    count = len(ordered)
    least = math.ceil(MIXED_SHARE * count)
    gaps = np.diff(ordered)[least - 1 : count - least]
    at = int(np.argmax(gaps)) + least
    inside = max(_deviation(ordered[:at]), _deviation(ordered[at:]))
    return at if float(gaps.max()) > (GAP if count >= MANY_BLOCKS else WIDE_GAP) * inside else None


def _deviation(logs: Floats) -> float:
    """The standard deviation, from the median absolute deviation."""
    return 1.4826 * median(np.abs(logs - median(logs)))


def _differ(first: Floats, second: Floats) -> bool:
    """Whether two levels are further apart than LEAST_STEP, and than WIDTHS half-widths of the interval of their distance."""
    apart = abs(median(second) - median(first))
    # 1.2533: the standard error of a median over that of a mean, for normal noise.
    half = 1.96 * 1.2533 * math.hypot(*(_deviation(part) / math.sqrt(len(part)) for part in (first, second)))
    return apart > max(LEAST_STEP, WIDTHS * half)
