"""A row for each case of a run: its time, rates, share of the roof, verdict and speed-up.

Everything is derived from the stored facts each time it is shown; nothing here is stored.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Literal

from kernelviz.core import Clock, Failure, Figure, Result, Roof, Run
from kernelviz.core.run_cache import RunCache
from kernelviz.metrics import roofline
from kernelviz.metrics.above_roof import AboveRoof, above_roof
from kernelviz.metrics.figures import Headline, again_of, figure_of
from kernelviz.metrics.issue_rate import IssueShare, issue_share
from kernelviz.metrics.judgement import measured_apart
from kernelviz.metrics.stability import level_decides, stability
from kernelviz.metrics.statistics import opposed, shared_medians
from kernelviz.metrics.verdict_reasons import NotStable
from kernelviz.metrics.verdicts import Verdict, verdict, verdict_apart

_computed: RunCache[tuple["Row", ...]] = RunCache(most=200_000, size=len)
"""A page computes the rows of a run five times, and each session again."""
ROUNDING = 0.005
"""Speed-ups are shown with three digits, so a smaller difference from the ratio of the shown times is not visible."""


@dataclass(frozen=True, slots=True)
class SharedRounds:
    """A case's time and that of its baseline in the rounds that measured both."""

    time_s: float
    baseline_s: float


@dataclass(frozen=True, slots=True)
class Row:
    """A case with what follows from its facts. For a failed case everything except `result` and `wrong_figure` is None.

    `wrong_figure` is the time of a wrong result: it is shown, marked, and never compared. `speed_up` is the baseline's
    time over this one, by shared rounds if there are any, else by the two estimates; 1 for the baseline itself. It is None if a
    time is not stable and its level decides, or if it is unclear and the shown times say the opposite. Bandwidth, rate and
    `efficiency` of a time that is not stable are None as well, because they would be those of neither level. `in_shared_rounds`:
    both times in the rounds that they share, if their ratio is not that of the two times as shown. `above_roof`: why `efficiency`
    is above 1. `issue`: the share of the issue rate at the measured clock, for a problem of arithmetic whose clock is known.
    `clock`: the clock mode of the run's method, from which the quality of the time follows.
    """

    result: Result
    figure: Figure | None
    wrong_figure: Figure | None
    bandwidth_bytes_per_s: float | None
    rate_flop_per_s: float | None
    efficiency: float | None
    verdict: Verdict | None
    speed_up: float | None
    is_baseline: bool
    in_shared_rounds: SharedRounds | None = None
    above_roof: AboveRoof | None = None
    issue: IssueShare | None = None
    clock: Clock | None = None

    @property
    def failure(self) -> Failure | None:
        return self.result.outcome if isinstance(self.result.outcome, Failure) else None

    @property
    def time_s(self) -> float:
        """The time; infinite for a failed case, so that rows can be sorted by it."""
        return self.figure.estimate if self.figure else inf

    @property
    def half_width(self) -> float | None:
        """Half the interval of the time, of the bandwidth and of the rate, as a fraction; None if it is unknown."""
        return self.figure.half_width if self.figure else None

    @property
    def unstable(self) -> bool:
        """Whether the time has two levels, so that no single number is the time."""
        return self.figure is not None and stability(self.figure).unstable


def rows(run: Run, roofs: Sequence[Roof], headline: Headline = "cold") -> tuple[Row, ...]:
    """A row for each result, in plan order. `verdict` is None for the baseline and if either time is missing."""
    return _computed.get((run, tuple(roofs), headline), lambda: _rows(run, roofs, headline))


def _rows(run: Run, roofs: Sequence[Roof], headline: Headline) -> tuple[Row, ...]:
    results = in_plan_order(run)
    baselines = {r.problem.key: r for r in results if r.variant == run.plan.baseline}
    return tuple(_row(r, baselines.get(r.problem.key), roofs, headline, run) for r in results)


def in_plan_order(run: Run) -> tuple[Result, ...]:
    """The newest result of each case, problem by problem in the order of the plan; cases outside the plan come last."""
    newest = {r.case.key: r for r in run.results}
    planned = [newest.pop(case.key) for case in run.plan.cases() if case.key in newest]
    return (*planned, *newest.values())


def _row(result: Result, base: Result | None, roofs: Sequence[Roof], headline: Headline, run: Run) -> Row:
    figure, cost = figure_of(result.timing, headline), result.cost
    failure = result.outcome if isinstance(result.outcome, Failure) else None
    is_baseline = base is not None and result.variant == base.variant
    judged = None if is_baseline else compared(result, base, headline)
    base_figure = figure_of(base.timing if base else None, headline)
    # What follows from a time that is not stable is unknown.
    level = None if figure is None or stability(figure).unstable else figure
    light = roofline.speed_of_light(result.problem, cost, roofs, headline) if level else None
    return Row(
        result=result,
        figure=figure,
        wrong_figure=figure_of(failure.timing, headline) if failure else None,
        bandwidth_bytes_per_s=roofline.bandwidth_bytes_per_s(cost, level.estimate) if level and cost else None,
        rate_flop_per_s=roofline.rate_flop_per_s(cost, level.estimate) if level and cost else None,
        efficiency=roofline.efficiency(light, level),
        verdict=judged,
        speed_up=_speed_up(figure, base_figure, judged, is_baseline),
        is_baseline=is_baseline,
        in_shared_rounds=_in_shared_rounds(figure, base_figure, judged),
        above_roof=above_roof(cost, light, level, headline) if light and level and cost else None,
        issue=issue_share(result.problem, cost, level, run.environment.device),
        clock=run.method.clock,
    )


def compared(result: Result, base: Result | None, headline: Headline = "cold") -> Verdict | None:
    """The verdict of a result against the baseline's result of the same problem; None if either has no time."""
    base_timing = base.timing if base else None
    time, base_time = figure_of(result.timing, headline), figure_of(base_timing, headline)
    if time is None or base_time is None or base is None:
        return None
    if measured_apart(result, base) and not level_decides(time, base_time):
        return verdict_apart(time, base_time)
    return _verdict(time, base_time, again_of(base_timing, headline))


# A page asks again at each redraw, and a bootstrap over some dozen rounds takes milliseconds for each case.
@lru_cache(maxsize=4096)
def _verdict(time: Figure, baseline: Figure, again: Figure | None) -> Verdict:
    decided = verdict(time, baseline, again)
    return (
        Verdict("unclear", None, decided.floor, decided.rounds, NotStable())
        if level_decides(time, baseline)
        else decided
    )


def _speed_up(figure: Figure | None, base: Figure | None, judged: Verdict | None, is_baseline: bool) -> float | None:
    if figure is None or base is None:
        return None
    if is_baseline:
        return 1.0
    if judged is not None and isinstance(judged.reason, NotStable):
        return None
    of_times = base.estimate / figure.estimate
    if judged is None or judged.speed_up is None:
        return of_times
    # Beside much other work, the rounds and the shown times can disagree on which of the two is faster.
    return None if judged.kind == "unclear" and opposed(judged.speed_up, of_times) else judged.speed_up


def _in_shared_rounds(figure: Figure | None, base: Figure | None, judged: Verdict | None) -> SharedRounds | None:
    """The two times in shared rounds, if the verdict's ratio differs from that of the shown times by more than all intervals, or
    if one of the times is not stable."""
    ratio = judged.ratio if judged else None
    if figure is None or base is None or ratio is None or min(figure.estimate, base.estimate, ratio.estimate) <= 0:
        return None
    apart = abs(math.log(figure.estimate / base.estimate / ratio.estimate))
    unstable = stability(figure).unstable or stability(base).unstable
    if not unstable and apart <= math.hypot(*(one.half_width or 0.0 for one in (figure, base, ratio)), ROUNDING):
        return None
    times = shared_medians(figure, base)
    return None if times is None else SharedRounds(*times)


Quantity = Literal["bandwidth", "rate", "time"]
LEAST_WORK = 2**14
"""Bytes and operations up to which a case is a launch and little else: a GPU does 100 times as much in the time of a launch."""


def usual_quantity(table: Sequence[Row]) -> Quantity:
    """What a chart of these cases shows first: their time if none has any work to speak of (`LEAST_WORK`), else their arithmetic
    rate or their bandwidth, whichever tells more."""
    known = [r.result.cost for r in table if r.result.cost]
    if known and all(max(cost.moved_bytes, cost.work_flop) <= LEAST_WORK for cost in known):
        return "time"
    return "rate" if by_rate(table) else "bandwidth"


def by_rate(table: Sequence[Row]) -> bool:
    """Whether FLOP/s tells more about these cases than bytes/s: most of them do much arithmetic for each byte."""
    known = [r.result.cost for r in table if r.result.cost]
    return sum(map(roofline.intense, known)) * 2 > len(known)
