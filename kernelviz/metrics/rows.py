"""A row for each case of a run: its time, rates, share of the roof, verdict and speed-up.

Everything is derived from the stored facts each time it is shown; nothing here is stored.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf

from kernelviz.core import Failure, Figure, Result, Roof, Run
from kernelviz.metrics import roofline
from kernelviz.metrics.figures import Headline, again_of, figure_of
from kernelviz.metrics.statistics import Verdict, verdict


@dataclass(frozen=True, slots=True)
class Row:
    """A case with what follows from its facts. For a failed case everything except `result` and `wrong_figure` is None.

    `wrong_figure` is the time of a wrong result: it is shown, marked, and never compared. `speed_up` is the baseline's
    time over this one, by shared rounds if there are any, else by the two estimates; 1 for the baseline itself.
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

    @property
    def failure(self) -> Failure | None:
        return self.result.outcome if isinstance(self.result.outcome, Failure) else None

    @property
    def time_s(self) -> float:
        """The time; infinite for a failed case, so that rows can be sorted by it."""
        return self.figure.estimate if self.figure else inf


def rows(run: Run, roofs: Sequence[Roof], headline: Headline = "cold") -> tuple[Row, ...]:
    """A row for each result, in plan order. `verdict` is None for the baseline and if either time is missing."""
    results = in_plan_order(run)
    baselines = {r.problem.key: r for r in results if r.variant == run.plan.baseline}
    return tuple(_row(r, baselines.get(r.problem.key), roofs, headline) for r in results)


def in_plan_order(run: Run) -> tuple[Result, ...]:
    """The newest result of each case, problem by problem in the order of the plan; cases outside the plan come last."""
    newest = {r.case.key: r for r in run.results}
    planned = [newest.pop(case.key) for case in run.plan.cases() if case.key in newest]
    return (*planned, *newest.values())


def _row(result: Result, base: Result | None, roofs: Sequence[Roof], headline: Headline) -> Row:
    figure, cost = figure_of(result.timing, headline), result.cost
    failure = result.outcome if isinstance(result.outcome, Failure) else None
    is_baseline = base is not None and result.variant == base.variant
    judged = None if is_baseline else compared(result, base, headline)
    return Row(
        result=result,
        figure=figure,
        wrong_figure=figure_of(failure.timing, headline) if failure else None,
        bandwidth_bytes_per_s=roofline.bandwidth_bytes_per_s(cost, figure.estimate) if figure and cost else None,
        rate_flop_per_s=roofline.rate_flop_per_s(cost, figure.estimate) if figure and cost else None,
        efficiency=roofline.efficiency(result, roofs, figure, headline) if figure else None,
        verdict=judged,
        speed_up=_speed_up(figure, base, judged, is_baseline, headline),
        is_baseline=is_baseline,
    )


def compared(result: Result, base: Result | None, headline: Headline = "cold") -> Verdict | None:
    """The verdict of a result against the baseline's result of the same problem; None if either has no time."""
    base_timing = base.timing if base else None
    time, base_time = figure_of(result.timing, headline), figure_of(base_timing, headline)
    return None if time is None or base_time is None else _verdict(time, base_time, again_of(base_timing, headline))


# A page asks again at each redraw, and a bootstrap over some dozen rounds takes milliseconds for each case.
_verdict = lru_cache(maxsize=4096)(verdict)


def _speed_up(
    figure: Figure | None, base: Result | None, judged: Verdict | None, is_baseline: bool, headline: Headline
) -> float | None:
    base_time = figure_of(base.timing if base else None, headline)
    if figure is None or base_time is None:
        return None
    if is_baseline:
        return 1.0
    return (judged.speed_up if judged else None) or base_time.estimate / figure.estimate


def by_rate(table: Sequence[Row]) -> bool:
    """Whether FLOP/s tells more about these cases than bytes/s: most of them do much arithmetic for each byte."""
    known = [r.result.cost for r in table if r.result.cost]
    return sum(map(roofline.intense, known)) * 2 > len(known)
