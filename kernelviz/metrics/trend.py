"""The time of a case from run to run on one device: when its level changed, and whether it is slower than before."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal

import numpy as np

from kernelviz.metrics import uncertainty
from kernelviz.metrics.statistics import LEAST_DIFFERENCE, Floats

MIN_RUNS = 3
"""A level needs so many runs: one or two may be outliers, and are reported as not confirmed yet."""
LEAST_NOISE = 0.002
"""From run to run a case differs by this at least (five fresh processes on an H200: half-range 0.02-0.38 %)."""
Z, Z_FEW = 3.2, 16.0
"""A change among n runs must be at least Z + Z_FEW / n standard errors: the noise of few runs is badly known."""
CLEAR_SHARE = 0.8
"""At least this share of the runs of either level is on its side of the middle between both."""
_MEDIAN_ERROR = 1.2533
"""The standard error of a median over that of a mean, for normal noise: sqrt(pi / 2)."""
_MAD = 1.4826

Direction = Literal["slower", "faster"]


@dataclass(frozen=True, slots=True)
class Point:
    """A case's time in one run. `provenance`: what may explain a change (source digest, versions, driver), by name."""

    run_id: str
    at: str
    time_s: float
    low_s: float | None = None
    high_s: float | None = None
    provenance: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that is not the same in the runs before and after a change; None if a run does not state it."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Change:
    """The case has another level from the point with this index on. `because`: what differs between the runs on both sides."""

    index: int
    before_s: float
    after_s: float
    because: tuple[Difference, ...] = ()

    @property
    def ratio(self) -> float:
        """New level over old; above 1 is slower."""
        return self.after_s / self.before_s

    @property
    def direction(self) -> Direction:
        return "slower" if self.ratio > 1 else "faster"


@dataclass(frozen=True, slots=True)
class Trend:
    """The points in the order of time, and the changes of their level. `noise`: relative, from run to run."""

    points: tuple[Point, ...]
    changes: tuple[Change, ...]
    noise: float

    @property
    def level_s(self) -> float:
        """The level of today: the median since the last change."""
        return levels_of(self)[-1][1]

    @property
    def regression(self) -> Change | None:
        """The change since which the case is slower than its best level; None if today's level is the best.

        Its `before_s` is the best of the levels that differ from today's as clearly as a change must, and its `after_s` today's.
        """
        levels = levels_of(self)
        today = levels[-1][1]
        logs = np.log(np.asarray([p.time_s for p in self.points], dtype=np.float64))
        firsts = [*(first for first, _ in levels), len(logs)]
        better = [
            i
            for i, (first, level_s) in enumerate(levels[:-1])
            if level_s < today and _clear(logs[first : firsts[i + 1]], logs[firsts[-2] :], self.noise)
        ]
        if not better:
            return None
        best = min(better, key=lambda i: levels[i][1])
        left = self.changes[best]  # the change that ended the best level
        return Change(left.index, levels[best][1], today, left.because)

    @property
    def unconfirmed(self) -> Change | None:
        """The newest run alone, if it differs from today's level by as much as a change has to; the next runs decide."""
        first = self.changes[-1].index if self.changes else 0
        before = [p.time_s for p in self.points[first:-1]]
        if len(before) < MIN_RUNS:
            return None
        level, newest = float(np.median(before)), self.points[-1].time_s
        error = self.noise * math.sqrt(1 + _MEDIAN_ERROR**2 / len(before))
        needed = max(_needed(len(before) + 1) * error, math.log1p(LEAST_DIFFERENCE))
        if abs(math.log(newest / level)) < needed:
            return None
        last = len(self.points) - 1
        return Change(last, level, newest, _because(self.points, last))


def trend(points: Sequence[Point]) -> Trend:
    """Levels of the times: least squares of their logarithms with a price for each change (optimal partitioning, Jackson et al.
    2005), after a median of three has removed isolated outliers. A change counts if the medians on its two sides differ by at
    least 0.5 % and by Z + Z_FEW / n standard errors, and both levels are clear; else its sides are one level.

    The noise is the median absolute deviation of the differences of neighbours, which a few changes and outliers do not affect,
    and at least what the intervals of the runs say.
    Simulated, 400 series each (tests/metrics/test_trend.py): of 10 to 50 runs without a change, under normal noise of
    0.1, 0.3 and 1 %, with 5 % of outliers of 3 to 10 %, or with Student's t of 3 degrees, at most 1 % have one; a step of 2 %
    under 0.3 % of noise is found three runs after it in 94 %. More are found if neighbouring runs are correlated (a warm day).

    >>> [c.index for c in trend([Point(str(i), str(i), 1.0 if i < 6 else 1.03) for i in range(12)]).changes]
    [6]
    >>> trend([Point("a", "1", 1.0)]).changes
    ()
    """
    logs = np.log(np.asarray([p.time_s for p in points], dtype=np.float64))
    noise = max(_noise(logs), _noise_inside(points))
    indices = _clear_changes(logs, _partition(_smoothed(logs), noise), noise)
    medians = [float(np.exp(np.median(logs[a:b]))) for a, b in pairwise([0, *indices, len(points)]) if b]
    levels = zip(indices, pairwise(medians), strict=True)
    changes = tuple(Change(index, before, after, _because(points, index)) for index, (before, after) in levels)
    return Trend(tuple(points), changes, noise)


def levels_of(trend: Trend) -> list[tuple[int, float]]:
    """(first index, median time) of each level, in order."""
    firsts = [0, *(c.index for c in trend.changes)]
    ends = [*firsts[1:], len(trend.points)]
    times = [p.time_s for p in trend.points]
    return [(a, float(np.median(times[a:b]))) for a, b in zip(firsts, ends, strict=True)]


def _noise(logs: Floats) -> float:
    steps = np.diff(logs)
    if len(steps) < 2:
        return LEAST_NOISE
    return max(float(_MAD * np.median(np.abs(steps - np.median(steps))) / math.sqrt(2)), LEAST_NOISE)


def _noise_inside(points: Sequence[Point]) -> float:
    """The standard error of one run by its own 95 % interval, as a fraction: the median of the runs that have an interval."""
    errors = [
        (p.high_s - p.low_s) / (2 * uncertainty.Z * p.time_s)
        for p in points
        if p.low_s is not None and p.high_s is not None
    ]
    return float(np.median(errors)) if errors else 0.0


def _needed(runs: int) -> float:
    return Z + Z_FEW / runs


def _smoothed(logs: Floats) -> Floats:
    """Each value becomes the median of itself and its neighbours, which removes single outliers and keeps steps."""
    if len(logs) < 3:
        return logs
    inner: Floats = np.median(np.stack([logs[:-2], logs[1:-1], logs[2:]]), axis=0)
    return np.concatenate([logs[:1], inner, logs[-1:]])


def _partition(values: Floats, noise: float) -> list[int]:
    """The indices at which levels of at least MIN_RUNS begin, for the least sum of squares plus the price of the changes."""
    count = len(values)
    if count < 2 * MIN_RUNS:
        return []
    sums = np.concatenate([[0.0], np.cumsum(values)])
    squares = np.concatenate([[0.0], np.cumsum(values**2)])
    price = (_needed(count) * noise) ** 2
    least = np.full(count + 1, np.inf)
    least[0] = -price
    begins = np.zeros(count + 1, dtype=np.int64)
    for end in range(MIN_RUNS, count + 1):
        first = np.arange(0, end - MIN_RUNS + 1)
        inside = squares[end] - squares[first] - (sums[end] - sums[first]) ** 2 / (end - first)
        total = least[first] + inside + price
        begins[end] = first[np.argmin(total)]
        least[end] = total.min()
    indices = [int(begins[count])]
    while indices[0] > 0:
        indices.insert(0, int(begins[indices[0]]))
    return indices[1:]


def _clear_changes(logs: Floats, indices: Sequence[int], noise: float) -> list[int]:
    """The changes that are clear against both neighbouring levels; the smallest unclear one is removed first, which merges the
    levels on its sides."""
    left = list(indices)
    while True:
        ends = [0, *left, len(logs)]
        sides = [(logs[a:b], logs[b:c]) for a, b, c in zip(ends[:-2], left, ends[2:], strict=True)]
        unclear = [i for i, (before, after) in enumerate(sides) if not _clear(before, after, noise)]
        if not unclear:
            return left
        del left[min(unclear, key=lambda i: abs(_step(*sides[i])))]


def _step(before: Floats, after: Floats) -> float:
    return float(np.median(after) - np.median(before))


def _clear(before: Floats, after: Floats, noise: float) -> bool:
    """Whether two levels differ by enough standard errors, and most runs of each are on their side of the middle."""
    step, error = _step(before, after), noise * _MEDIAN_ERROR * math.sqrt(1 / len(before) + 1 / len(after))
    if abs(step) < max(math.log1p(LEAST_DIFFERENCE), _needed(len(before) + len(after)) * error):
        return False
    middle = float(np.median(before)) + step / 2
    shares = (np.mean((before > middle) != (step > 0)), np.mean((after > middle) == (step > 0)))
    return float(min(shares)) >= CLEAR_SHARE


def _because(points: Sequence[Point], index: int) -> tuple[Difference, ...]:
    """The provenance that differs between the runs on both sides."""
    before, after = dict(points[index - 1].provenance), dict(points[index].provenance)
    names = dict.fromkeys((*before, *after))
    return tuple(Difference(n, before.get(n), after.get(n)) for n in names if before.get(n) != after.get(n))
