"""What fusing saves in a run: the steps without fusing, the best fused variant, both predictions, and where it pays."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from kernelviz.core import Cost, Figure, Problem, Result, Roof, Run, units
from kernelviz.core.driver_operations import count_memsets
from kernelviz.core.fusion import FusionFamily, Step
from kernelviz.metrics.figures import again_of
from kernelviz.metrics.fusion_prediction import (
    LaunchCost,
    MissingFact,
    PredictionA,
    PredictionB,
    Saving,
    UnfusedFacts,
    ln_error,
    predict_by_costs,
    predict_by_unfused_time,
    saving,
)
from kernelviz.metrics.fusion_reasons import Explained, FusionReason, reasons_of_a, reasons_of_b
from kernelviz.metrics.judgement import measured_apart
from kernelviz.metrics.rows import ROUNDING, Row, rows
from kernelviz.metrics.stability import level_decides, stability
from kernelviz.metrics.statistics import Interval, opposed
from kernelviz.metrics.verdict_reasons import NotStable
from kernelviz.metrics.verdicts import Verdict, verdict_apart
from kernelviz.metrics.winner import compared, never_winning

_LAUNCHES = "cuda_launches"
"""The variant of `empty_launch` that launches its kernels one by one."""


@dataclass(frozen=True, kw_only=True, slots=True)
class DeclaredFusion:
    """What the catalogue says about a problem: the steps of each variant that is not fused, and the names of the fused ones."""

    family: FusionFamily
    steps: Mapping[str, tuple[Step, ...]]
    fused: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class FusionRow:
    """A composition at one problem of a run, beside the best fused variant.

    `unfused`, `fused`: results with a correct time; `fused` is None if no fused variant has one. `fastest`: whether no other
    composition of the problem is faster; predictions are judged by these. `saved` are bytes and launches. `speed_up` is the time
    of the steps over that of the fused variant with its interval. It is None without both times, if the level of a time is not
    stable, or if it is unclear and the two times say the opposite. `a` and `b`: the predictions, or what is missing for them;
    `error_a` and `error_b`: logarithms of predicted over measured speed-up.
    """

    run_id: str
    device: str
    family: FusionFamily
    problem: Problem
    unfused: Result
    unfused_figure: Figure
    fused: Result | None
    fused_figure: Figure | None
    fastest: bool
    steps: tuple[Step, ...]
    intermediate_bytes: int
    cache_bytes: int | None
    saved: Saving
    a: PredictionA | MissingFact
    b: PredictionB | MissingFact
    verdict: Verdict | None
    speed_up: Interval | None
    error_a: float | None
    error_b: float | None
    reasons_a: tuple[FusionReason, ...] = ()
    reasons_b: tuple[FusionReason, ...] = ()

    @property
    def in_memory(self) -> bool | None:
        """Whether each intermediate tensor has at least four times the last-level cache; None if the cache is unknown."""
        return None if self.cache_bytes is None else self.intermediate_bytes >= 4 * self.cache_bytes

    @property
    def ratio_of_times(self) -> float | None:
        """The time of the steps over that of the fused variant, each over all of its rounds."""
        return None if self.fused_figure is None else self.unfused_figure.estimate / self.fused_figure.estimate

    @property
    def by_other_rounds(self) -> bool:
        """Whether the ratio of the two times is outside of the interval of the speed-up as that is printed, because it is by
        other rounds."""
        of_times, speed_up = self.ratio_of_times, self.speed_up
        if of_times is None or speed_up is None:
            return False
        if speed_up.low is None or speed_up.high is None:
            return abs(math.log(of_times / speed_up.estimate)) > ROUNDING
        rounding = 0.5 * 10.0 ** -units.interval_decimals(speed_up.estimate, speed_up.low, speed_up.high)
        return not speed_up.low - rounding <= of_times <= speed_up.high + rounding

    @property
    def predicted_a(self) -> float | None:
        """The speed-up by costs and roofs."""
        return self.a.speed_up if isinstance(self.a, PredictionA) else None

    @property
    def predicted_b(self) -> float | None:
        """The speed-up by the measured time of the steps."""
        return self.b.speed_up if isinstance(self.b, PredictionB) else None


def fusion_rows(
    run: Run, roofs: Sequence[Roof], launch: LaunchCost | None, declared: Callable[[Problem], DeclaredFusion]
) -> tuple[FusionRow, ...]:
    """A row for each composition with a correct time, at each forward problem of the run in the order of its plan."""
    table = rows(run, roofs)
    wrong = set(never_winning(table))
    by_problem: dict[str, list[Row]] = {}
    for row in table:
        if row.result.problem.direction == "forward":
            by_problem.setdefault(row.result.problem.key, []).append(row)
    return tuple(
        one
        for group in by_problem.values()
        for one in _of_problem(run, group, wrong, roofs, launch, declared(group[0].result.problem))
    )


def _of_problem(
    run: Run,
    group: Sequence[Row],
    wrong: set[str],
    roofs: Sequence[Roof],
    launch: LaunchCost | None,
    declared: DeclaredFusion,
) -> list[FusionRow]:
    timed = sorted((r for r in group if r.figure and r.result.variant not in wrong), key=lambda r: r.time_s)
    unfused = [r for r in timed if r.result.variant in declared.steps and r.result.cost]
    fused = next((r for r in timed if r.result.variant in declared.fused), None)
    base = next((r for r in group if r.is_baseline), None)
    return [
        _row(run, row, fused, base, roofs, launch, declared, fastest=number == 0) for number, row in enumerate(unfused)
    ]


def _row(
    run: Run,
    row: Row,
    fused: Row | None,
    base: Row | None,
    roofs: Sequence[Roof],
    launch: LaunchCost | None,
    declared: DeclaredFusion,
    *,
    fastest: bool,
) -> FusionRow:
    result, figure, cost = row.result, row.figure, row.result.cost
    assert figure is not None
    assert cost is not None
    facts = _facts(result, figure, declared.steps[result.variant])
    unstable = stability(figure).unstable
    a, b = _predictions(facts, cost, roofs, launch, unstable=unstable)
    saved, cache = saving(facts, cost), run.environment.device.last_level_cache_bytes
    verdict = None if fused is None else _verdict(fused, row, base)
    speed_up = None if fused is None or verdict is None else _speed_up(fused, row, verdict)
    errors = [
        ln_error(p.speed_up, speed_up.estimate) if speed_up is not None and not isinstance(p, str) else None
        for p in (a, b)
    ]
    explained = (
        None
        if fused is None or fused.figure is None or unstable or fused.unstable
        else Explained(
            facts=facts,
            saved=saved,
            launch=launch,
            shortest=a if isinstance(a, PredictionA) else None,
            by_time=b if isinstance(b, PredictionB) else None,
            unfused=result,
            fused=fused.result,
            fused_s=fused.figure.estimate,
            half_width=speed_up.half_width if speed_up is not None else None,
            cache_bytes=cache,
            device=run.environment.device,
            roofs=roofs,
        )
    )
    return FusionRow(
        run_id=run.id,
        device=run.environment.device.name,
        family=declared.family,
        problem=result.problem,
        unfused=result,
        unfused_figure=figure,
        fused=fused.result if fused else None,
        fused_figure=fused.figure if fused else None,
        fastest=fastest,
        steps=facts.steps,
        intermediate_bytes=facts.intermediate_bytes,
        cache_bytes=cache,
        saved=saved,
        a=a,
        b=b,
        verdict=verdict,
        speed_up=speed_up,
        error_a=errors[0],
        error_b=errors[1],
        reasons_a=reasons_of_a(explained, errors[0]) if explained and errors[0] is not None else (),
        reasons_b=reasons_of_b(explained, errors[1]) if explained and errors[1] is not None else (),
    )


def _facts(result: Result, figure: Figure, steps: tuple[Step, ...]) -> UnfusedFacts:
    """What the predictions may know: nothing of the fused variant is here."""
    launches = len(result.kernels) or sum(step.launches for step in steps)
    return UnfusedFacts(
        steps=steps,
        time_s=figure.estimate,
        launches=launches,
        precision=result.problem.precision,
        memsets=count_memsets(result.kernels),
    )


def _predictions(
    facts: UnfusedFacts, cost: Cost, roofs: Sequence[Roof], launch: LaunchCost | None, *, unstable: bool
) -> tuple[PredictionA | MissingFact, PredictionB | MissingFact]:
    return (
        predict_by_costs(facts.steps, cost, facts.precision, roofs),
        "not_stable" if unstable else predict_by_unfused_time(facts, cost, roofs, launch),
    )


def _verdict(fused: Row, unfused: Row, base: Row | None) -> Verdict:
    """The verdict of the fused variant against the steps; below 1, its ratio says that fusing is faster."""
    time, other = fused.figure, unfused.figure
    assert time is not None
    assert other is not None
    if measured_apart(fused.result, unfused.result) and not level_decides(time, other):
        return verdict_apart(time, other)
    return compared(time, other, base.figure if base else None, again_of(base.result.timing if base else None, "cold"))


def _speed_up(fused: Row, unfused: Row, verdict: Verdict) -> Interval | None:
    of_times = unfused.time_s / fused.time_s
    if isinstance(verdict.reason, NotStable):
        return None
    if verdict.ratio is None:
        return Interval(of_times, None, None)
    speed_up = verdict.ratio.inverse()
    # As on the page Bench: beside much other work, the rounds and the two times can disagree on which of the two is faster.
    return None if verdict.kind == "unclear" and opposed(speed_up.estimate, of_times) else speed_up


def launch_slope_s(run: Run) -> float | None:
    """What one more kernel adds to the device time of a call, by a run of `empty_launch`: the slope between the fewest and the
    most launches of its CUDA C++ kernel. None without two numbers of launches."""
    times = {
        row.result.problem.sizes["k"]: row.time_s
        for row in rows(run, ())
        if row.result.variant == _LAUNCHES and row.figure is not None and "k" in row.result.problem.sizes
    }
    if len(times) < 2:
        return None
    few, many = min(times), max(times)
    slope = (times[many] - times[few]) / (many - few)
    return slope if slope > 0 else None


PayoffKind = Literal["everywhere", "nowhere", "from", "up_to", "between", "some", "unknown"]
"""At which sizes of a line fusing is faster. ``some``: at sizes that are no neighbours. ``unknown``: no verdict is decided."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Payoff:
    """Where fusing pays along an axis. `first` and `last`: the ends of the sizes at which the fused variant is faster.
    `stops_at`: the nearest size beyond them at which it is not. `unclear`: the number of sizes without a decided verdict.
    `rows`: in the order of the sizes."""

    axis: str
    kind: PayoffKind
    first: int | None
    last: int | None
    stops_at: int | None
    unclear: int
    rows: tuple[FusionRow, ...]

    @property
    def without_gain(self) -> tuple[int, ...]:
        """The decided sizes at which fusing pays nothing."""
        return tuple(
            row.problem.sizes[self.axis] for row in self.rows if row.verdict and row.verdict.kind in ("slower", "same")
        )


def payoff(line: Sequence[FusionRow], axis: str) -> Payoff:
    """Where fusing pays along a line of rows that differ in one axis. A size counts as paying if the verdict is "faster".

    Ties are decided: there, fusing pays nothing. Sizes without a decision belong to neither side."""
    ordered = tuple(sorted(line, key=lambda row: row.problem.sizes[axis]))
    decided = [row for row in ordered if row.verdict is not None and row.verdict.kind != "unclear"]
    sizes = [row.problem.sizes[axis] for row in decided]
    pays = [row.verdict is not None and row.verdict.kind == "faster" for row in decided]
    kind: PayoffKind
    first = last = stops = None
    if not decided:
        kind = "unknown"
    elif not any(pays):
        kind = "nowhere"
    else:
        start, end = pays.index(True), len(pays) - 1 - pays[::-1].index(True)
        first, last = sizes[start], sizes[end]
        at_start, at_end = start == 0, end == len(pays) - 1
        if not all(pays[start : end + 1]):
            kind = "some"
        elif at_start and at_end:
            kind = "everywhere"
        else:
            kind = "up_to" if at_start else "from" if at_end else "between"
            stops = sizes[end + 1] if at_start else sizes[start - 1]
    return Payoff(
        axis=axis,
        kind=kind,
        first=first,
        last=last,
        stops_at=stops,
        unclear=len(ordered) - len(decided),
        rows=ordered,
    )


def lines_along(table: Sequence[FusionRow], axis: str) -> tuple[tuple[FusionRow, ...], ...]:
    """The rows of the fastest compositions that differ in this axis alone, in lines of at least two; the longest line first. If
    there is no such line, other axes may have the size of this one (m = n = k)."""
    return _lines(table, axis, tied=False) or _lines(table, axis, tied=True)


def line_through(lines: Sequence[Sequence[FusionRow]], problem: Problem) -> Sequence[FusionRow] | None:
    """The first of these lines that has a row of the problem, None if none has one."""
    return next((line for line in lines if any(row.problem.key == problem.key for row in line)), None)


def axes_along(table: Sequence[FusionRow], axes: Sequence[str]) -> dict[str, tuple[FusionRow, ...]]:
    """The longest line of each of these axes that has one. An axis that only varies together with an earlier one is left out."""
    longest: dict[str, tuple[FusionRow, ...]] = {}
    earlier: list[set[str]] = []
    for axis in axes:
        for line in lines_along(table, axis)[:1]:
            problems = {row.problem.key for row in line}
            if problems not in earlier:
                earlier.append(problems)
                longest[axis] = line
    return longest


def _lines(table: Sequence[FusionRow], axis: str, *, tied: bool) -> tuple[tuple[FusionRow, ...], ...]:
    by_rest: dict[tuple[object, ...], dict[int, FusionRow]] = {}
    for row in table:
        problem = row.problem
        if row.fastest and axis in problem.sizes:
            size = problem.sizes[axis]
            rest = tuple("tied" if tied and s == size else s for name, s in problem.sizes.items() if name != axis)
            key = (row.run_id, problem.op, problem.dtype, problem.compute, problem.data, *rest)
            by_rest.setdefault(key, {})[size] = row
    lines = [tuple(line[size] for size in sorted(line)) for line in by_rest.values() if len(line) > 1]
    return tuple(sorted(lines, key=len, reverse=True))
