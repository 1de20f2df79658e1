"""The ladder of an op at one problem: its variants of each backend in their order, and what each gains over the one before it.

A step is a variant of the ladder with its result. Its gain is relative to the last step before it that has a correct time, by
the rule for two variants of one run (`metrics.comparison`). Variants of libraries are no steps: a ladder is compared with them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replaced
from math import inf
from typing import Literal

from msgspec.structs import replace

from kernelviz.core import LIVING, Failure, Problem, Result, Roof, Run, Status
from kernelviz.core.configuration import base_name
from kernelviz.core.machine_code import Technique
from kernelviz.core.reasons import Refusal
from kernelviz.metrics.comparison import Pair, pair_of
from kernelviz.metrics.figures import Headline
from kernelviz.metrics.library_comparison import OWN
from kernelviz.metrics.roofline import SpeedOfLight, speed_of_light
from kernelviz.metrics.rows import Quantity, Row, rows, usual_quantity
from kernelviz.metrics.statistics import Interval
from kernelviz.metrics.winner import NEVER_WINNING

Metric = Quantity
"""What a ladder climbs: seconds, the least bytes of the problem per second, or its flop per second."""
StepKind = Literal[
    "first", "faster", "slower", "same", "unclear", "not comparable", "wrong", "wrong elsewhere", "failed", "absent"
]
"""How a step ends: the first one with a correct time; its verdict against the last correct one before it; or why it has no gain.
``wrong elsewhere``: correct here, but wrong at another problem of the run, so that it may be correct here by chance."""


@dataclass(frozen=True, slots=True)
class PublishedStep:
    """How many times as fast as the variant `over` a source reports the idea of a variant to be. `problem`: at which problem,
    None if the source's sizes are not known here. `device`: None if it is not named. `source`: its address or its name."""

    factor: float
    over: str
    source: str
    device: str | None = None
    problem: Problem | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class PublishedValue:
    """A rate (in `unit`: flop/s or B/s) or a time (s) that a source reports for the idea of a variant at this problem."""

    value: float
    unit: Literal["flop/s", "B/s", "s"]
    source: str
    device: str | None = None
    remark: str = ""


@dataclass(frozen=True, slots=True)
class DeclaredVariant:
    """What the catalogue of today says of a variant. `idea`: its caption. `digest`: of its source, None if unknown. `refusal`:
    why it cannot solve the problem on any machine. `only_when_named`: plans leave it out by default."""

    name: str
    backend: str
    idea: str
    techniques: frozenset[Technique] = frozenset()
    published: tuple[PublishedStep, ...] = ()
    published_values: tuple[PublishedValue, ...] = ()
    only_when_named: bool = False
    digest: str | None = None
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True)
class NotPlanned:
    """The run does not measure the variant at this problem."""


@dataclass(frozen=True, slots=True)
class NotYet:
    """The run is still in progress."""


@dataclass(frozen=True, slots=True)
class RunEnded:
    """The run ended before the variant was measured."""

    status: Status


Absence = NotPlanned | NotYet | RunEnded
"""Why a step has no result."""


@dataclass(frozen=True, slots=True)
class Step:
    """A variant of a ladder. `number`: its place in the ladder, from 1. `row`: its result, None with an `absence`. `over`: the
    last step before it that has a correct time. `gain`: the comparison with that one (time of this one over the time of that
    one), if this one has a correct time, too. `between`: the steps between the two, none of which has a correct time.
    `wrong_elsewhere`: it is wrong at another problem of the run. `new_techniques`: those that it declares and `over` does
    not."""

    declared: DeclaredVariant
    number: int
    row: Row | None
    absence: Absence | None = None
    over: DeclaredVariant | None = None
    gain: Pair | None = None
    between: tuple[str, ...] = ()
    wrong_elsewhere: bool = False
    new_techniques: frozenset[Technique] = frozenset()

    @property
    def variant(self) -> str:
        return self.declared.name

    @property
    def result(self) -> Result | None:
        return None if self.row is None else self.row.result

    @property
    def correct(self) -> bool:
        """Whether it has a correct time that counts."""
        return self.row is not None and self.row.figure is not None and not self.wrong_elsewhere and not self._refuted

    @property
    def _refuted(self) -> bool:
        """Whether the result has a time, although its outputs did not pass the check."""
        accuracy = None if self.row is None else self.row.result.accuracy
        return accuracy is not None and not accuracy.passed

    @property
    def speed_up(self) -> Interval | None:
        """How many times as fast as that variant it is; below 1 it is slower."""
        return None if self.gain is None or self.gain.ratio is None else self.gain.ratio.inverse()

    @property
    def kind(self) -> StepKind:
        if self.row is None:
            return "absent"
        if self.row.failure is not None:
            return "wrong" if self.row.failure.stage in NEVER_WINNING else "failed"
        if self._refuted:
            return "wrong"
        if self.wrong_elsewhere:
            return "wrong elsewhere"
        if self.row.figure is None:
            return "failed"
        if self.gain is None:
            return "first"
        return "same" if self.gain.kind == "same code" else self.gain.kind

    @property
    def code_changed(self) -> bool:
        """Whether the variant's code is another one today than when it was measured."""
        result = self.result
        return result is not None and None not in (result.source_digest, self.declared.digest) and (
            result.source_digest != self.declared.digest
        )  # fmt: skip


@dataclass(frozen=True, slots=True)
class BackendLadder:
    """The steps of one backend, in order."""

    backend: str
    steps: tuple[Step, ...]

    @property
    def correct(self) -> tuple[Step, ...]:
        """The steps with a correct time."""
        return tuple(step for step in self.steps if step.correct)

    @property
    def planned(self) -> int:
        """How many of its steps the run measures."""
        return sum(not isinstance(step.absence, NotPlanned) for step in self.steps)

    @property
    def outdated(self) -> bool:
        """Whether the code of every step with a result is another one today."""
        measured = [step for step in self.steps if step.result is not None]
        return len(measured) > 1 and all(step.code_changed for step in measured)

    @property
    def best(self) -> Step | None:
        """The step with the shortest correct time."""
        return min(self.correct, key=lambda step: _time_s(step.row), default=None)


@dataclass(frozen=True, slots=True)
class Ladder:
    """All ladders of an op at one problem of a run. `libraries`: the rows of variants that were not written here, the fastest
    first. `beside`: own variants of the run that are no steps. `excluded`: variants that cannot solve the problem, with the
    reason in `refusal`. `left_out`: variants that only plans that name them measure, and this one does not. `light`: the least
    time that the roofs allow."""

    run: Run
    problem: Problem
    headline: Headline
    ladders: tuple[BackendLadder, ...]
    libraries: tuple[Row, ...]
    beside: tuple[Row, ...]
    excluded: tuple[DeclaredVariant, ...]
    left_out: tuple[DeclaredVariant, ...]
    light: SpeedOfLight | None

    @property
    def library(self) -> Row | None:
        """The fastest library with a correct time."""
        return next((row for row in self.libraries if row.figure is not None), None)

    @property
    def main(self) -> BackendLadder | None:
        """The ladder with the most correct steps; of several, the one of which the run measures the most, then the first one."""
        return max(self.ladders, key=lambda ladder: (len(ladder.correct), ladder.planned), default=None)

    @property
    def metric(self) -> Metric:
        """What the problem is best shown by."""
        table = [step.row for ladder in self.ladders for step in ladder.steps if step.row] or list(self.libraries)
        if all(row.result.cost is None for row in table):
            return "time"
        return usual_quantity(table)

    def with_times(self, backend: str | None = None) -> tuple[BackendLadder, ...]:
        """The ladders with a correct step, those with the most first; only that of one backend if it is given."""
        chosen = (of for of in self.ladders if backend in (None, of.backend) and of.correct)
        return tuple(sorted(chosen, key=lambda of: -len(of.correct)))

    def of(self, backend: str) -> BackendLadder | None:
        """The ladder of a backend."""
        return next((ladder for ladder in self.ladders if ladder.backend == backend), None)

    def compared(self, before: Row, after: Row) -> Pair:
        """The comparison of two rows of this problem."""
        return pair_of(self.run, before.result, self.run, after.result, self.headline, shared=True)


def ladder_at(
    run: Run, problem: Problem, declared: Sequence[DeclaredVariant], roofs: Sequence[Roof], headline: Headline = "cold"
) -> Ladder:
    """The ladders of a run at one problem. `declared`: the variants of the op in their order."""
    part = replace(run, results=tuple(r for r in run.results if r.problem.key == problem.key))
    table = {row.result.variant: row for row in rows(part, tuple(roofs), headline)}
    wrong = {r.variant for r in run.results if isinstance(r.outcome, Failure) and r.outcome.stage in NEVER_WINNING}
    own = [v for v in declared if v.backend in OWN]
    excluded = [v for v in own if v.refusal is not None and _not_tried(table.get(v.name))]
    by_backend = steps_by_backend([v for v in own if v not in excluded])
    ladders = tuple(
        BackendLadder(backend, _steps(run, problem, variants, table, wrong, headline))
        for backend, variants in by_backend.items()
    )
    in_ladders = {step.variant for ladder in ladders for step in ladder.steps}
    known = {v.name: v.backend for v in declared}
    rest = [row for name, row in table.items() if name not in in_ladders]
    libraries = [row for row in rest if _backend(row.result, known) not in OWN]
    costs = (r.cost for r in part.results if r.cost is not None)
    return Ladder(
        run=run,
        problem=problem,
        headline=headline,
        ladders=ladders,
        libraries=tuple(sorted(libraries, key=_time_s)),
        beside=tuple(row for row in rest if row not in libraries),
        excluded=tuple(excluded),
        left_out=tuple(v for v in own if v.name not in table and v.name not in in_ladders and v not in excluded),
        light=speed_of_light(problem, next(costs, None), roofs, headline),
    )


def _not_tried(row: Row | None) -> bool:
    return row is None or (row.failure is not None and row.failure.unavailable)


def steps_by_backend(own: Sequence[DeclaredVariant]) -> dict[str, list[DeclaredVariant]]:
    """The variants of each ladder in order. A variant that is measured only when somebody names it is slow or wrong, so it
    begins a ladder, or it is no step of one."""
    by_backend: dict[str, list[DeclaredVariant]] = {}
    usual = {v.backend for v in own if not v.only_when_named}
    for variant in own:
        steps = by_backend.get(variant.backend, [])
        begins = variant.backend in usual and all(step.only_when_named for step in steps)
        if begins or not variant.only_when_named:
            by_backend.setdefault(variant.backend, []).append(variant)
    return by_backend


def _backend(result: Result, known: Mapping[str, str]) -> str | None:
    """The backend of a result: as the catalogue says, else as it was measured."""
    return known.get(base_name(result.variant)) or result.backend


def _time_s(row: Row | None) -> float:
    return inf if row is None or row.figure is None else row.figure.estimate


def _steps(
    run: Run,
    problem: Problem,
    variants: Sequence[DeclaredVariant],
    table: Mapping[str, Row],
    wrong: set[str],
    headline: Headline,
) -> tuple[Step, ...]:
    steps: list[Step] = []
    last: Step | None = None
    between: list[str] = []
    for number, declared in enumerate(variants, 1):
        row = table.get(declared.name)
        earlier = frozenset[Technique]() if last is None else last.declared.techniques
        step = Step(
            declared=declared,
            number=number,
            row=row,
            absence=None if row is not None else _absence(run, problem, declared.name),
            over=None if last is None else last.declared,
            between=tuple(between),
            wrong_elsewhere=declared.name in wrong,
            new_techniques=declared.techniques - earlier,
        )
        if step.correct:
            if row is not None and last is not None and last.row is not None:
                step = replaced(step, gain=pair_of(run, last.row.result, run, row.result, headline, shared=True))
            last, between = step, []
        elif last is not None:
            between.append(declared.name)
        steps.append(step)
    return tuple(steps)


def _absence(run: Run, problem: Problem, variant: str) -> Absence:
    if variant not in run.plan.variants or all(p.key != problem.key for p in run.plan.problems):
        return NotPlanned()
    return NotYet() if run.status in LIVING else RunEnded(run.status)
