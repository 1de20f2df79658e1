"""Verdicts: whether a time is shorter or longer than another one, by the interval of their ratio and the noise floor."""

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal

from kernelviz.core.result import Figure
from kernelviz.metrics.statistics import (
    LEAST_DIFFERENCE,
    MIN_BLOCKS,
    Interval,
    fewest_blocks,
    ratio_interval,
    unpaired,
)
from kernelviz.metrics.verdict_reasons import (
    Apart,
    ByBaseline,
    Clears,
    FewBlocks,
    FewSharedRounds,
    FloorTooWide,
    NoSharedRounds,
    OtherLaunch,
    Straddles,
    VerdictReason,
)

LAUNCHES_APART_S = 0.15e-6
"""By which a call may take longer inside a graph than in the stream. H200, 23 calls of one kernel of 1.0 to 1.5 us, by CUPTI's
stamps: 0.02 to 0.14 us. The driver's copies are timed in the stream, because in a graph they are other copies."""
MOST_ALIKE = 0.02
"""Above this noise floor two variants are not called the same: with a floor of 8 %, a quarter of the slow-downs of 5 % under 5 %
of noise was called the same."""

VerdictKind = Literal["faster", "slower", "same", "unclear"]


@dataclass(frozen=True, slots=True)
class Verdict:
    """A comparison of two times. `ratio` is time over baseline's time: below 1 is faster."""

    kind: VerdictKind
    ratio: Interval | None
    floor: float | None
    rounds: int
    reason: VerdictReason

    @property
    def speed_up(self) -> float | None:
        """Baseline's time over this time; above 1 is faster."""
        return None if self.ratio is None else 1 / self.ratio.estimate


@lru_cache(maxsize=1024)
def noise_floor(baseline: Figure, again: Figure | None) -> float:
    """The difference between two series of one variant: the outer end of the A/A interval, at least 0.5 %."""
    if again is None:
        return LEAST_DIFFERENCE
    interval, _ = ratio_interval(again, baseline)
    if interval is None or interval.low is None or interval.high is None:
        return LEAST_DIFFERENCE
    return max(LEAST_DIFFERENCE, 1 / interval.low - 1, interval.high - 1)


def verdict(time: Figure, baseline: Figure, again: Figure | None = None) -> Verdict:
    """Faster, slower, same or unclear: the interval of the per-round ratio must clear the noise floor.

    Returns "unclear" with its reason when there are too few shared rounds or when the interval is partly inside the noise floor.
    """
    interval, rounds = ratio_interval(time, baseline)
    if interval is None:
        return Verdict("unclear", None, None, 0, NoSharedRounds())
    return judged_as_launched(interval, noise_floor(baseline, again), rounds, time, baseline)


def judged_as_launched(interval: Interval, floor: float, rounds: int, time: Figure, other: Figure) -> Verdict:
    """`judged`. If one call ran in a graph and the other in the stream, the floor is at least LAUNCHES_APART_S over the shorter
    time, and if that leaves the verdict open, its reason is OtherLaunch."""
    other_launch = {time.launch, other.launch} == {"graph", "stream"}
    apart = LAUNCHES_APART_S / min(time.estimate, other.estimate) if other_launch else 0.0
    if apart <= floor:
        return judged(interval, floor, rounds)
    decided = judged(interval, apart, rounds)
    open_ended = isinstance(decided.reason, FloorTooWide | Straddles)
    return replace(decided, reason=OtherLaunch(apart)) if open_ended else decided


def judged(interval: Interval, floor: float, rounds: int) -> Verdict:
    """The rule itself, for the interval of a ratio from so many rounds. It is symmetric in the two times, because ratios are
    compared with 1 + floor and 1 / (1 + floor)."""
    if interval.low is None or interval.high is None:
        return Verdict("unclear", interval, floor, rounds, FewSharedRounds(rounds, MIN_BLOCKS))
    least, most = 1 / (1 + floor), 1 + floor
    if interval.high < least:
        return Verdict("faster", interval, floor, rounds, Clears("below", floor))
    if interval.low > most:
        return Verdict("slower", interval, floor, rounds, Clears("above", floor))
    if interval.low >= least and interval.high <= most:
        if floor > MOST_ALIKE:
            return Verdict("unclear", interval, floor, rounds, FloorTooWide(floor))
        return Verdict("same", interval, floor, rounds, Clears("inside", floor))
    return Verdict("unclear", interval, floor, rounds, Straddles(floor))


def verdict_between(ratio: Interval, floor: float, blocks: int) -> Verdict:
    """The verdict on two times that share no rounds: the interval of the ratio of their medians must clear the noise floor."""
    if ratio.low is None or ratio.high is None:
        return Verdict("unclear", ratio, floor, blocks, FewBlocks(blocks or None, MIN_BLOCKS))
    return judged(ratio, floor, blocks)


@lru_cache(maxsize=4096)
def verdict_apart(time: Figure, other: Figure, *, inverted: bool = False) -> Verdict:
    """The verdict on two variants that were measured in processes of their own: each process may differ by the noise floor.

    `inverted`: its ratio is the inverse of that of `other` to `time`, whose interval has slightly different ends.
    """
    ratio = unpaired(other, time).inverse() if inverted else unpaired(time, other)
    floor, blocks = 2 * LEAST_DIFFERENCE, fewest_blocks(time, other)
    if ratio.low is None:
        decided = verdict_between(ratio, floor, blocks)
    else:
        decided = judged_as_launched(ratio, floor, blocks, time, other)
    assert not isinstance(decided.reason, ByBaseline | Apart)  # `verdict_between` gives no such reason
    return replace(decided, reason=Apart(decided.reason))
