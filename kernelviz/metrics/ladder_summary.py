"""What one sentence says of a ladder, and the values that its charts draw."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernelviz.core import Result
from kernelviz.metrics.comparison import Pair
from kernelviz.metrics.ladder import BackendLadder, Ladder, Metric, Step
from kernelviz.metrics.rows import Row
from kernelviz.metrics.statistics import Interval

SMALL = 0.05
"""The last steps are summed up together while they gain less than this."""


@dataclass(frozen=True, slots=True)
class LadderSummary:
    """What one sentence says of a ladder. `first`, `best`: the first step and the fastest one with a correct time. `total`: the
    best against the first. `largest`: the step with the largest gain; `largest_over_best`: the same step against the fastest one
    before it, where that is not the one that its gain is over. `slower`: the steps that made it slower. `tail`: how many steps at
    the end gain less than SMALL together, and the last against the one before them. `library`: the best step against the fastest
    library."""

    backend: str
    steps: int
    planned: int
    first: Step
    best: Step
    total: Pair | None
    largest: Step | None
    slower: tuple[Step, ...]
    tail: tuple[int, Pair] | None
    library: Pair | None
    largest_over_best: Pair | None = None


def summary_of(ladder: Ladder, of: BackendLadder) -> LadderSummary | None:
    """The facts of the sentence about a ladder; None if no step has a correct time."""
    correct, best = of.correct, of.best
    if best is None or best.row is None or correct[0].row is None:
        return None
    gains = [step for step in correct if step.kind == "faster" and step.speed_up is not None]
    library = ladder.library
    largest = max(gains, key=lambda step: step.speed_up.estimate if step.speed_up else 0.0, default=None)
    return LadderSummary(
        backend=of.backend,
        steps=len(correct),
        planned=len(of.steps),
        first=correct[0],
        best=best,
        total=ladder.compared(correct[0].row, best.row) if best is not correct[0] else None,
        largest=largest,
        slower=tuple(step for step in correct if step.kind == "slower"),
        tail=_tail(correct, ladder.compared),
        library=None if library is None else ladder.compared(library, best.row),
        largest_over_best=None if largest is None else _over_best(correct, largest, ladder.compared),
    )


def _over_best(correct: Sequence[Step], step: Step, compared: Callable[[Row, Row], Pair]) -> Pair | None:
    """The step against the fastest correct one before it; None if that is the one that its gain is over."""
    fastest = BackendLadder("", tuple(s for s in correct if s.number < step.number)).best
    if fastest is None or fastest.row is None or step.row is None or step.over is None:
        return None
    return None if fastest.variant == step.over.name else compared(fastest.row, step.row)


def _tail(correct: Sequence[Step], compared: Callable[[Row, Row], Pair]) -> tuple[int, Pair] | None:
    """The most steps at the end, at least two, whose times are all within SMALL of the last one; None if these are all steps."""
    last = correct[-1].row
    longest: tuple[int, Pair] | None = None
    for count in range(1, len(correct)):
        before = correct[-1 - count].row
        if before is None or last is None:
            return longest
        pair = compared(before, last)
        if pair.ratio is None or abs(1 / pair.ratio.estimate - 1) >= SMALL:
            return longest
        if count >= 2:
            longest = (count, pair)
    return None


def value_of(row: Row | None, metric: Metric) -> Interval | None:
    """The value of a correct row by the metric, with its interval; None if it is unknown, or if the time is not stable."""
    if row is None or row.figure is None or row.unstable:
        return None
    return converted(row.figure.estimate, row.figure.low, row.figure.high, row, metric)


def wrong_value_of(row: Row | None, metric: Metric) -> Interval | None:
    """The value that a wrong result would have. It is shown, marked, and never compared."""
    if row is None or row.wrong_figure is None:
        return None
    figure = row.wrong_figure
    return converted(figure.estimate, figure.low, figure.high, row, metric)


def converted(time_s: float, low_s: float | None, high_s: float | None, row: Row, metric: Metric) -> Interval | None:
    """A time with its interval as a value of the metric; None if the cost of the problem is unknown."""
    if metric == "time":
        return Interval(time_s, low_s, high_s)
    work = work_of(row.result, metric)
    if not work or time_s <= 0:
        return None
    return Interval(work / time_s, work / high_s if high_s else None, work / low_s if low_s else None)


def work_of(result: Result, metric: Metric) -> float | None:
    """The flop or the bytes of the problem; None if unknown, or for a time."""
    if result.cost is None or metric == "time":
        return None
    return result.cost.work_flop if metric == "rate" else result.cost.moved_bytes


def roof_value(ladder: Ladder, metric: Metric) -> float | None:
    """The least time that the measured roofs allow, as a value of the metric; None if it is unknown."""
    if ladder.light is None or ladder.light.time_s <= 0:
        return None
    if metric == "time":
        return ladder.light.time_s
    costs = (r for r in ladder.run.results if r.problem.key == ladder.problem.key and r.cost is not None)
    result = next(costs, None)
    work = None if result is None else work_of(result, metric)
    return work / ladder.light.time_s if work else None
