"""The fastest correct variant at each size, where the lead changes hands, and where nobody can say who leads."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from kernelviz.core import Figure, Problem, Stage
from kernelviz.metrics.roofline import Headline
from kernelviz.metrics.statistics import (
    LEAST_DIFFERENCE,
    Verdict,
    in_passes,
    judged,
    noise_floor,
    ratio_interval,
    ratio_of_medians,
    ratio_of_passes,
    round_ratios,
)
from kernelviz.metrics.verdict_reasons import ByBaseline, NoSharedRounds

if TYPE_CHECKING:
    from kernelviz.metrics.summary import Row

NEVER_WINNING: tuple[Stage, ...] = ("wrong", "impossible")
"""Failures after which a variant leads at no size of the run: where it is right, it is so by luck."""


@dataclass(frozen=True, slots=True)
class Winner:
    """Who is fastest at one problem. `leader` is None where no case has a correct time.

    `tied`: variants that the verdict rule does not tell apart from the leader ("same" or "unclear"), by time. `second`: the
    fastest of the others, with its `verdict` against the leader (its ratio is its time over the leader's). `timed`: every row
    with a correct time, fastest first.
    """

    problem: Problem
    leader: Row | None
    second: Row | None
    verdict: Verdict | None
    tied: tuple[str, ...]
    timed: tuple[Row, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """Whoever may be the fastest: one where it is decided, none without a correct time."""
        return () if self.leader is None else (self.leader.result.variant, *self.tied)

    @property
    def ratio(self) -> float | None:
        """The second's time over the leader's, by shared rounds where there are any, else by the two estimates."""
        if self.verdict is not None and self.verdict.ratio is not None:
            return self.verdict.ratio.estimate
        both = (self.leader.figure if self.leader else None, self.second.figure if self.second else None)
        return both[1].estimate / both[0].estimate if both[0] and both[1] else None


def winners(table: Sequence[Row], headline: Headline = "cold") -> tuple[Winner, ...]:
    """One for each problem of the table, in its order. A variant with a wrong or impossible result anywhere never wins."""
    wrong = set(never_winning(table))
    problems: dict[str, list[Row]] = {}
    for row in table:
        problems.setdefault(row.result.problem.key, []).append(row)
    return tuple(_winner(group, wrong, headline) for group in problems.values())


def never_winning(table: Sequence[Row]) -> tuple[str, ...]:
    """Variants with a wrong or impossible result at some size, in the order of the table."""
    return tuple(dict.fromkeys(r.result.variant for r in table if r.failure and r.failure.stage in NEVER_WINNING))


def _winner(group: Sequence[Row], wrong: set[str], headline: Headline) -> Winner:
    timed = sorted((r for r in group if r.figure and r.result.variant not in wrong), key=_time_s)
    problem = group[0].result.problem
    if not timed:
        return Winner(problem, None, None, None, (), ())
    base = next((r for r in group if r.is_baseline), None)
    leader, found = timed[0], _against(timed[0], timed, base, headline)
    ahead = [r for r in timed[1:] if found[r.result.variant].word == "faster"]
    if ahead:  # Shared rounds cancel what moves both times, so they overrule the order of the estimates.
        leader = min(ahead, key=lambda r: _ratio(found[r.result.variant]))
        found = _against(leader, timed, base, headline)
    tied = tuple(name for name, verdict in found.items() if verdict.word != "slower")
    rivals = {r.result.variant: r for r in timed if r is not leader}
    second = next(iter(tied or rivals), None)
    return Winner(
        problem, leader, rivals[second] if second else None, found[second] if second else None, tied, tuple(timed)
    )


def _time_s(row: Row) -> float:
    return row.figure.estimate if row.figure else float("inf")


def _ratio(verdict: Verdict) -> float:
    return verdict.ratio.estimate if verdict.ratio else float("inf")


def _against(leader: Row, timed: Sequence[Row], base: Row | None, headline: Headline) -> dict[str, Verdict]:
    """The verdict of each rival against the leader, by variant, in the order of their times."""
    timing = base.result.timing if base else None
    again = (timing.again_s if headline == "cold" else timing.again_warm_s) if timing else None
    own, to = leader.figure, base.figure if base else None
    return {r.result.variant: compared(r.figure, own, to, again) for r in timed if r is not leader and r.figure and own}


@lru_cache(maxsize=4096)
def compared(time: Figure, other: Figure, base: Figure | None, again: Figure | None) -> Verdict:
    """A time against another one, neither of which need be the baseline's; the noise floor is the baseline's A/A floor.

    Variants that compile late are measured in rounds of their own with the baseline, and share none with the others. Their
    ratio is then that of their two ratios to the baseline, each resampled over its own rounds; both comparisons have the
    floor, so twice the floor must be cleared.
    """
    floor = noise_floor(base, again) if base else LEAST_DIFFERENCE
    interval, rounds = ratio_interval(time, other)
    if interval is not None:
        return judged(interval, floor, rounds)
    if base is None:
        return Verdict("unclear", None, None, 0, NoSharedRounds())
    first, second = round_ratios(time, base), round_ratios(other, base)
    if not len(first) or not len(second):
        return Verdict("unclear", None, None, 0, NoSharedRounds(with_baseline=False))
    of = ratio_of_passes if in_passes(time.blocks) else ratio_of_medians
    found = judged(of(first, second), 2 * floor, min(len(first), len(second)))
    assert not isinstance(found.reason, ByBaseline)  # `judged` gives no other reasons than its own
    return replace(found, reason=ByBaseline(found.reason))
