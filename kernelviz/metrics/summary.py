"""What a run says: the fastest correct variant, its speed-up, its share of the roof, its worst size, and a row a case.

Everything is derived from the stored facts each time it is shown; nothing here is stored.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from kernelviz.core import Failure, Figure, Preparation, Problem, Result, Roof, Run, Timing
from kernelviz.metrics import roofline
from kernelviz.metrics.roofline import Headline as Headline
from kernelviz.metrics.statistics import LEAST_DIFFERENCE, Verdict, geometric_mean, verdict
from kernelviz.metrics.winner import Winner, never_winning, winners


def figure_of(timing: Timing | None, headline: Headline) -> Figure | None:
    """The figure that the page headlines: with flushed caches or with warm ones."""
    if timing is None:
        return None
    return timing.device_cold_s if headline == "cold" else timing.device_warm_s


@dataclass(frozen=True, slots=True)
class Row:
    """A case with what follows from its facts. For a failed case everything but `result` and `wrong_figure` is None.

    `wrong_figure` is the time of a wrong result: it is shown, marked, and never compared. `speed_up` is the baseline's
    time over this one, by shared rounds where there are any, else by the two estimates; 1 for the baseline itself.
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


def rows(run: Run, roofs: Sequence[Roof], headline: Headline = "cold") -> tuple[Row, ...]:
    """A row for each result, in plan order. `verdict` is None for the baseline and where either time is missing."""
    ordered = in_plan_order(run)
    baselines = {r.problem.key: r for r in ordered if r.variant == run.plan.baseline}
    return tuple(_row(r, baselines.get(r.problem.key), roofs, headline) for r in ordered)


def in_plan_order(run: Run) -> tuple[Result, ...]:
    """The newest result of each case, problem by problem in the order of the plan; cases outside the plan come last."""
    newest = {r.case.key: r for r in run.results}
    ordered = [newest.pop(case.key) for case in run.plan.cases() if case.key in newest]
    return (*ordered, *newest.values())


def _row(result: Result, base: Result | None, roofs: Sequence[Roof], headline: Headline) -> Row:
    figure = figure_of(result.timing, headline)
    failed = result.outcome if isinstance(result.outcome, Failure) else None
    is_baseline = base is not None and result.variant == base.variant
    judged = None if is_baseline else compared(result, base, headline)
    cost = result.cost
    return Row(
        result=result,
        figure=figure,
        wrong_figure=figure_of(failed.timing, headline) if failed else None,
        bandwidth_bytes_per_s=roofline.bandwidth_bytes_per_s(cost, figure.estimate) if figure and cost else None,
        rate_flop_per_s=roofline.rate_flop_per_s(cost, figure.estimate) if figure and cost else None,
        efficiency=roofline.efficiency(result, roofs, figure, headline) if figure else None,
        verdict=judged,
        speed_up=_speed_up(figure, base, judged, is_baseline, headline),
        is_baseline=is_baseline,
    )


def compared(result: Result, base: Result | None, headline: Headline = "cold") -> Verdict | None:
    """The verdict of a result against the baseline's result of the same problem; None where either has no time."""
    time, base_time = figure_of(result.timing, headline), figure_of(base.timing if base else None, headline)
    if time is None or base is None or base_time is None:
        return None
    again = None
    if base.timing is not None:
        again = base.timing.again_s if headline == "cold" else base.timing.again_warm_s
    return _verdict(time, base_time, again)


# A page asks again at each redraw, and a bootstrap over some dozen rounds takes milliseconds a case.
_verdict = lru_cache(maxsize=4096)(verdict)


def _speed_up(
    figure: Figure | None, base: Result | None, judged: Verdict | None, is_baseline: bool, headline: Headline
) -> float | None:
    if figure is None:
        return None
    if is_baseline:
        return 1.0
    if judged is not None and judged.speed_up is not None:
        return judged.speed_up
    base_time = figure_of(base.timing if base else None, headline)
    return None if base_time is None else base_time.estimate / figure.estimate


@dataclass(frozen=True, slots=True)
class Summary:
    """The four answers above the charts, all about one variant: the fastest correct one.

    `wins` of `problems`: at how many sizes it leads, by the verdict rule; at `tied` others it may. `alike`: variants whose
    geometric mean time is within 0.5 % of its own. `unclear`: at how many sizes its comparison with
    the baseline is undecided. `efficiency` is its mean share of the measured roof over
    `efficiencies` sizes and `best_efficiency` the largest of them, None when not calibrated. `worst` is the size with
    its lowest share (or, not calibrated, its lowest speed-up). `excluded` are variants with a wrong or impossible
    result somewhere: they cannot be fastest.
    """

    fastest: str
    wins: int
    tied: int
    alike: tuple[str, ...]
    problems: int
    covered: int
    speed_up: float | None
    speed_ups: int
    unclear: int
    efficiency: float | None
    best_efficiency: float | None
    efficiencies: int
    worst: Problem | None
    worst_efficiency: float | None
    worst_speed_up: float | None
    excluded: tuple[str, ...]


def summary(table: Sequence[Row], headline: Headline = "cold") -> Summary | None:
    """The answers, or None while there is no correct time.

    Fastest is the variant with the lowest geometric mean time among those that cover the most sizes, so that a variant
    that failed at the large sizes cannot win by its small ones. Where these cover different sizes, the mean is that of the sizes
    that all of them cover; where there are none, who leads at the most sizes.
    """
    excluded = never_winning(table)
    timed = [r for r in table if r.figure is not None and r.result.variant not in excluded]
    if not timed:
        return None
    by_variant: dict[str, list[Row]] = {}
    for row in timed:
        by_variant.setdefault(row.result.variant, []).append(row)
    leads = winners(table, headline)
    fastest, alike = _fastest(by_variant, leads)
    own = by_variant[fastest]
    ratios = [r.speed_up for r in own if r.speed_up is not None]
    shares = [r.efficiency for r in own if r.efficiency is not None]
    worst = _worst(own)
    return Summary(
        fastest=fastest,
        wins=sum(one.names == (fastest,) for one in leads),
        tied=sum(fastest in one.names for one in leads if len(one.names) > 1),
        alike=alike,
        problems=len({r.result.problem.key for r in timed}),
        covered=len(own),
        speed_up=geometric_mean(ratios),
        speed_ups=len(ratios),
        unclear=sum(r.verdict is not None and r.verdict.word == "unclear" for r in own),
        efficiency=sum(shares) / len(shares) if shares else None,
        best_efficiency=max(shares, default=None),
        efficiencies=len(shares),
        worst=worst.result.problem if worst else None,
        worst_efficiency=worst.efficiency if worst else None,
        worst_speed_up=worst.speed_up if worst else None,
        excluded=excluded,
    )


def _time_s(row: Row) -> float:
    return row.figure.estimate if row.figure else float("inf")


def _fastest(by_variant: Mapping[str, Sequence[Row]], leads: Sequence[Winner]) -> tuple[str, tuple[str, ...]]:
    """The fastest of the variants that cover the most sizes, and those whose mean time is within 0.5 % of its own."""
    most = max(len(group) for group in by_variant.values())
    times_s = {
        name: {r.result.problem.key: _time_s(r) for r in group}
        for name, group in by_variant.items()
        if len(group) == most
    }
    common = set.intersection(*(set(found) for found in times_s.values()))
    if not common:
        wins = Counter(one.leader.result.variant for one in leads if one.leader)
        return max(times_s, key=lambda name: wins[name]), ()
    means = {name: geometric_mean([found[key] for key in common]) or 0.0 for name, found in times_s.items()}
    fastest = min(means, key=lambda name: means[name])
    near = means[fastest] * (1 + LEAST_DIFFERENCE)
    return fastest, tuple(name for name, mean in means.items() if name != fastest and mean <= near)


def _worst(own: Sequence[Row]) -> Row | None:
    for measure in ("efficiency", "speed_up"):
        known = [r for r in own if getattr(r, measure) is not None]
        if known:
            return min(known, key=lambda r: float(getattr(r, measure)))
    return None


def by_rate(table: Sequence[Row]) -> bool:
    """Whether FLOP/s says more of these cases than bytes/s: most of them do much arithmetic a byte."""
    known = [r.result.cost for r in table if r.result.cost]
    return sum(map(roofline.intense, known)) * 2 > len(known)


def first_call_s(preparation: Preparation | None) -> float | None:
    """Binding and first call together; None when neither is known."""
    if preparation is None:
        return None
    known = [s for s in (preparation.bind_s, preparation.first_call_s) if s is not None]
    return sum(known) if known else None
