"""The fastest correct variant at each size, and the sizes at which several variants may be the fastest."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import inf
from typing import Literal

from kernelviz.core import Figure, Problem, Stage
from kernelviz.core.run_cache import TableCache
from kernelviz.metrics.figures import Headline, again_of
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.judgement import measured_apart
from kernelviz.metrics.rows import Row
from kernelviz.metrics.stability import level_decides
from kernelviz.metrics.statistics import (
    LEAST_DIFFERENCE,
    in_passes,
    opposed,
    ratio_interval,
    ratio_of_medians,
    ratio_of_passes,
    round_ratios,
)
from kernelviz.metrics.verdict_reasons import Apart, ByBaseline, NoSharedRounds, NotStable
from kernelviz.metrics.verdicts import Verdict, judged_as_launched, noise_floor, verdict_apart

NEVER_WINNING: tuple[Stage, ...] = ("wrong", "impossible")
"""A variant with such a failure leads at no size of the run: where its result is right, it may be so by chance."""


_computed: TableCache[tuple["Winner", ...]] = TableCache(most=32)

Outcome = Literal["won", "tied", "unclear", "none"]
"""How the comparison at one problem ends. "won": every other variant is slower than the leader. "tied": at least one variant has
the verdict "same" as the leader, and all others are slower. "unclear": a variant could not be distinguished from the leader, so
that it may be faster or slower; this is not a tie. "none": no case has a correct time."""


@dataclass(frozen=True, slots=True)
class Winner:
    """The fastest variant at one problem. `leader` is None if no case has a correct time.

    `tied`: the variants with the verdict "same" as the leader, by time. `unclear`: those with an undecided verdict. `second`: the
    fastest of all others, with its `verdict` against the leader (the ratio is its time over the leader's). `timed`: every row
    with a correct time, fastest first.
    """

    problem: Problem
    leader: Row | None
    second: Row | None
    verdict: Verdict | None
    tied: tuple[str, ...]
    unclear: tuple[str, ...]
    timed: tuple[Row, ...]

    @property
    def outcome(self) -> Outcome:
        if self.leader is None:
            return "none"
        return "unclear" if self.unclear else "tied" if self.tied else "won"

    @property
    def names(self) -> tuple[str, ...]:
        """All variants that may be the fastest: one if it is decided, none without a correct time. The leader is first, then
        those that are tied with it, then the unclear ones."""
        return () if self.leader is None else (self.leader.result.variant, *self.tied, *self.unclear)

    @property
    def ratio(self) -> float | None:
        """The second's time over the leader's, by shared rounds if there are any, else by the two estimates. None if one of
        them is not stable and its level decides, or if an unclear ratio is the opposite of that of the two times."""
        if self.leader is None or self.second is None or (self.verdict and isinstance(self.verdict.reason, NotStable)):
            return None
        of_times = self.second.time_s / self.leader.time_s
        if self.verdict is None or self.verdict.ratio is None:
            return of_times
        ratio = self.verdict.ratio.estimate
        return None if self.verdict.kind == "unclear" and opposed(ratio, of_times) else ratio


def winners(table: Sequence[Row], headline: Headline = "cold") -> tuple[Winner, ...]:
    """One for each problem of the table, in its order. A variant with a wrong or impossible result at any size never wins."""
    if not isinstance(table, tuple):  # a list may change
        return _winners(table, headline)
    return _computed.get(table, headline, lambda: _winners(table, headline))


def _winners(table: Sequence[Row], headline: Headline) -> tuple[Winner, ...]:
    wrong = set(never_winning(table))
    problems = grouped(table, key=lambda row: row.result.problem.key)
    return tuple(_winner(group, wrong, headline) for group in problems.values())


def never_winning(table: Sequence[Row]) -> tuple[str, ...]:
    """Variants with a wrong or impossible result at some size, in the order of the table."""
    return tuple(mistakes(table))


def mistakes(table: Sequence[Row]) -> dict[str, frozenset[Stage]]:
    """Why each variant never wins, in the order of the table: a wrong result, an impossible time, or both at different sizes."""
    stages: dict[str, set[Stage]] = {}
    for row in table:
        if row.failure and row.failure.stage in NEVER_WINNING:
            stages.setdefault(row.result.variant, set()).add(row.failure.stage)
    return {variant: frozenset(of) for variant, of in stages.items()}


def _winner(group: Sequence[Row], wrong: set[str], headline: Headline) -> Winner:
    timed = sorted((r for r in group if r.figure and r.result.variant not in wrong), key=lambda r: r.time_s)
    problem = group[0].result.problem
    if not timed:
        return Winner(problem, None, None, None, (), (), ())
    base = next((r for r in group if r.is_baseline), None)
    leader, verdicts = timed[0], _against(timed[0], timed, base, headline)
    ahead = [r for r in timed[1:] if verdicts[r.result.variant].kind == "faster"]
    if ahead:  # Shared rounds cancel what changes both times, so they overrule the order of the estimates.
        leader = min(ahead, key=lambda r: _ratio(verdicts[r.result.variant]))
        verdicts = _against(leader, timed, base, headline)
    tied = tuple(name for name, verdict in verdicts.items() if verdict.kind == "same")
    unclear = tuple(name for name, verdict in verdicts.items() if verdict.kind not in ("same", "slower"))
    second = next((name for name in verdicts if name in tied or name in unclear), next(iter(verdicts), None))
    row = next((r for r in timed if r.result.variant == second), None)
    return Winner(problem, leader, row, verdicts[second] if second else None, tied, unclear, tuple(timed))


def _ratio(verdict: Verdict) -> float:
    return verdict.ratio.estimate if verdict.ratio else inf


def _against(leader: Row, timed: Sequence[Row], base: Row | None, headline: Headline) -> dict[str, Verdict]:
    """The verdict of each other variant against the leader, in the order of their times."""
    own, base_figure = leader.figure, base.figure if base else None

    def against_leader(row: Row, time: Figure, other: Figure) -> Verdict:
        if measured_apart(row.result, leader.result) and not level_decides(time, other):
            # Against the baseline, the ratio is always that of the table; see `compared`.
            return verdict_apart(time, other, inverted=row is base)
        return compared(time, other, base_figure, again)

    again = again_of(base.result.timing if base else None, headline)
    return {r.result.variant: against_leader(r, r.figure, own) for r in timed if r is not leader and r.figure and own}


@lru_cache(maxsize=4096)
def compared(time: Figure, other: Figure, base: Figure | None, again: Figure | None) -> Verdict:
    """The verdict of a time against another; neither has to be the baseline's. The noise floor is the baseline's A/A floor.

    Variants that compile slowly are measured in rounds of their own with the baseline, and share none with the other variants.
    Their ratio is then that of their two ratios to the baseline, each resampled over its own rounds. Both comparisons have the
    noise floor, so the ratio must clear twice the floor.
    """
    floor = noise_floor(base, again) if base else LEAST_DIFFERENCE
    if level_decides(time, other):
        return Verdict("unclear", None, floor, 0, NotStable())
    # Against the baseline, the ratio is always that of the table: the other time over the baseline's. The bootstrap of the
    # inverse ratio has slightly different ends, with which the winner's verdict could contradict the table's.
    interval, rounds = ratio_interval(other, time) if time is base else ratio_interval(time, other)
    if interval is not None:
        return judged_as_launched(interval.inverse() if time is base else interval, floor, rounds, time, other)
    first, second = (round_ratios(time, base), round_ratios(other, base)) if base else ((), ())
    if not len(first) or not len(second):
        return Verdict("unclear", None, None, 0, NoSharedRounds(with_baseline=base is None))
    ratio_of = ratio_of_passes if in_passes(time.blocks) else ratio_of_medians
    shared = min(len(first), len(second))
    verdict = judged_as_launched(ratio_of(first, second), 2 * floor, shared, time, other)
    assert not isinstance(verdict.reason, ByBaseline | Apart)  # `judged` gives no other reasons than its own
    return replace(verdict, reason=ByBaseline(verdict.reason))
