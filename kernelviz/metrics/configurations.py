"""The configurations of a tuning with their outcomes: the best one over the search, and the resources of each.

A configuration whose result is wrong has no time here, so it can never be the best. A time of another tool was checked by nobody
and is marked so. A configuration that was stopped after one block has the estimate of that block and can never be the best.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Literal

from kernelviz.core import BadField, Failure, Figure, Problem, Result, Run, Span
from kernelviz.core.code_facts import CaseFacts
from kernelviz.core.configuration import Value, parameters
from kernelviz.core.reasons import NotAdmitted
from kernelviz.core.run_cache import RunCache
from kernelviz.metrics import foreign_times
from kernelviz.metrics.quality import WIDE
from kernelviz.metrics.rows import in_plan_order
from kernelviz.metrics.tuning import Reason, failure_reasons, is_tuning, speed_up_span, stopped_early, tried
from kernelviz.metrics.verdicts import VerdictKind

ConfigurationState = Literal["measured", "stopped", "unchecked", "wrong", "failed", "refused", "cancelled"]
"""Correct and measured to the end; correct, and stopped after one block; a time of another tool; a wrong or impossible result;
another failure; not admitted by the variant for such sizes; cancelled."""
TIMED: tuple[ConfigurationState, ...] = ("measured", "stopped", "unchecked")
"""The states with a time."""
NEARLY_COMPLETE = 0.9
"""The share of the planned configurations with a result from which on a search says what its parameters are worth."""
LONGEST_PAUSE_S = 600.0
"""A longer time without any result is a pause between a cancelled run and its continuation, and counts as no time."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """A configuration and its outcome. `place`: its position in the order of the search, from 1. `time_s` with its interval:
    None in states without a time. `after_s`: seconds of the search until it had a result; None if unknown. `registers` and
    `local_bytes` of a thread, and `spills` (loads from and stores to local memory in the code): the most of its kernels, None
    if unknown. `speed_up`: the time of the default over its own, in shared rounds, with the `verdict` on it; None if unknown.
    `in_final`: whether it was measured again at the end."""

    variant: str
    values: Mapping[str, Value]
    place: int
    state: ConfigurationState
    time_s: float | None = None
    low_s: float | None = None
    high_s: float | None = None
    failure: Failure | None = None
    is_default: bool = False
    is_best: bool = False
    after_s: float | None = None
    registers: int | None = None
    local_bytes: int | None = None
    spills: int | None = None
    speed_up: float | None = None
    verdict: VerdictKind | None = None
    in_final: bool = False

    @property
    def wide(self) -> bool:
        """Whether its interval is so wide that its time decides little (`metrics.quality`)."""
        if self.time_s is None or self.low_s is None or self.high_s is None:
            return False
        return max(self.high_s - self.time_s, self.time_s - self.low_s) > WIDE * self.time_s

    @property
    def spilled(self) -> bool | None:
        """Whether its code uses local memory: by its machine code, else by the tracer. None if neither says so."""
        if self.spills is not None:
            return self.spills > 0
        return True if self.local_bytes else None


@dataclass(frozen=True, slots=True)
class ConfigurationSpace:
    """The configurations of a tuning that have a result, in the order of the search. `parameters`: the values of each
    parameter, in ascending order where they are numbers. `failures`: the reasons, the most frequent first. `default` and `best`
    are among the configurations; None where there is none. `gain`: the time of the default over that of the best, in shared
    rounds. `figure`: of another tool's times, the name that its file gives them; empty for cold device times of kernelviz.
    `varying`: the parameters with several values among the configurations. `planned_values`: how many values of each parameter
    the plan has."""

    run_id: str
    device: str
    problem: Problem
    variant: str
    parameters: Mapping[str, tuple[Value, ...]]
    configurations: tuple[Configuration, ...]
    failures: tuple[Reason, ...]
    best: Configuration | None
    default: Configuration | None
    gain: Span | None
    space: int
    admitted: int | None
    planned: int
    foreign: bool
    figure: str = ""
    planned_values: Mapping[str, int] = field(default_factory=dict)

    @property
    def timed(self) -> tuple[Configuration, ...]:
        """The configurations with a time."""
        return tuple(c for c in self.configurations if c.time_s is not None)

    @property
    def untimed(self) -> tuple[Configuration, ...]:
        """Those that failed or are wrong: they were tried, and have no time that counts."""
        return tuple(c for c in self.configurations if c.state in ("wrong", "failed"))

    @property
    def is_nearly_complete(self) -> bool:
        """Whether so many of the planned configurations have a result that those which are missing change little."""
        answered = sum(c.state != "cancelled" for c in self.configurations)
        return answered >= NEARLY_COMPLETE * self.planned

    @property
    def varying(self) -> tuple[str, ...]:
        return tuple(key for key in self.parameters if len({repr(c.values.get(key)) for c in self.configurations}) > 1)


_spaces: RunCache[ConfigurationSpace] = RunCache(most=200_000, size=lambda space: len(space.configurations))


def configuration_space(run: Run) -> ConfigurationSpace:
    """The configurations of a tuning, also of an unfinished one or of another tool. Errors: BadField for a run that is none."""
    if run.plan.search is None:
        raise BadField("run", run.id, "it is no tuning; `kernelviz tune` makes one")
    return _spaces.get((run, "configurations"), lambda: _space(run))


def _space(run: Run) -> ConfigurationSpace:
    search = run.plan.search
    assert search is not None
    results = in_plan_order(run)
    foreign = not is_tuning(run)
    name = next(iter(foreign_times.names(run)), "") if foreign else ""
    result = None if foreign else tried(run)
    best_name = result.best.result.variant if result and result.best else ""
    after_s = _times_of_search(run, results)
    listed = [
        _configuration(place, result, name, after)
        for place, (result, after) in enumerate(zip(results, after_s, strict=True), 1)
    ]
    if foreign:
        fastest = min((c for c in listed if c.time_s is not None), key=lambda c: c.time_s or 0.0, default=None)
        best_name = fastest.variant if fastest is not None else ""
    ranked = {row.result.variant: row for row in result.ranked} if result is not None else {}
    marked = tuple(
        replace(
            c,
            is_default=not foreign and c.variant == run.plan.baseline,
            is_best=c.variant == best_name,
            speed_up=ranked[c.variant].speed_up if c.variant in ranked else None,
            verdict=verdict.kind
            if c.variant in ranked and (verdict := ranked[c.variant].verdict) is not None
            else None,
            in_final=result is not None and c.variant in result.final,
        )
        for c in listed
    )
    return ConfigurationSpace(
        run_id=run.id,
        device=run.environment.device.name,
        problem=run.plan.problems[0],
        variant=search.variant,
        parameters=_values(search.parameter_values, marked),
        configurations=marked,
        failures=failure_reasons(run.results),
        best=next((c for c in marked if c.is_best), None),
        default=next((c for c in marked if c.is_default), None),
        gain=speed_up_span(result.best) if result is not None and result.best is not None else None,
        space=search.space,
        admitted=search.admitted,
        planned=len(run.plan.variants),
        foreign=foreign,
        figure=name,
        planned_values=_planned_values(run.plan.variants),
    )


def _planned_values(variants: Sequence[str]) -> Mapping[str, int]:
    values: dict[str, set[str]] = {}
    for variant in variants:
        for key, value in parameters(variant).items():
            values.setdefault(key, set()).add(repr(value))
    return {key: len(some) for key, some in values.items()}


def _configuration(place: int, result: Result, foreign_name: str, after_s: float | None) -> Configuration:
    state = _state(result, bool(foreign_name))
    figure = _figure(result, foreign_name) if state in TIMED else None
    if state in TIMED and figure is None:
        state = "failed"
    stopped = state == "stopped"
    registers = [k.registers_per_thread for k in result.kernels if k.registers_per_thread is not None]
    local = [k.local_memory_bytes for k in result.kernels if k.local_memory_bytes]
    return Configuration(
        variant=result.variant,
        values=parameters(result.variant),
        place=place,
        state=state,
        time_s=figure.estimate if figure is not None else None,
        low_s=figure.low if figure is not None and not stopped else None,
        high_s=figure.high if figure is not None and not stopped else None,
        failure=result.outcome if isinstance(result.outcome, Failure) else None,
        after_s=after_s,
        registers=max(registers, default=None),
        local_bytes=max(local, default=None),
    )


def _state(result: Result, foreign: bool) -> ConfigurationState:
    if not isinstance(result.outcome, Failure):
        return "unchecked" if foreign else "measured" if stopped_early(result) is None else "stopped"
    if result.outcome.stage == "cancelled":
        return "cancelled"
    if any(isinstance(reason, NotAdmitted) for reason in result.outcome.reasons):
        return "refused"
    return "wrong" if result.outcome.stage in ("wrong", "impossible") else "failed"


def _figure(result: Result, foreign_name: str) -> Figure | None:
    if result.timing is None:
        return None
    return result.timing.other_times.get(foreign_name) if foreign_name else result.timing.device_cold_s


def _times_of_search(run: Run, results: Sequence[Result]) -> list[float | None]:
    """Seconds from the beginning of the search until each configuration had its result.

    The best configurations are measured a second time at the end, and their results have the time of that. The search goes
    through the configurations in the order of the plan, so each had its first result no later than those behind it."""
    moments = [_moment(result.measured_at) for result in results]
    latest: datetime | None = None
    first: list[datetime | None] = []
    for moment in reversed(moments):
        if moment is not None and (latest is None or moment < latest):
            latest = moment
        first.append(latest)
    first.reverse()
    before, spent_s, seconds = _moment(run.created_at), 0.0, list[float | None]()
    for moment in first:
        if before is None or not any(moments):
            seconds.append(None)
            continue
        moment = moment or before  # the last ones have no date: when the one before them had its result, or later
        gap_s = max(0.0, (moment - before).total_seconds())
        spent_s += gap_s if gap_s <= LONGEST_PAUSE_S else 0.0
        before = max(moment, before)
        seconds.append(spent_s)
    return seconds


def _moment(stamp: str | None) -> datetime | None:
    try:
        moment = datetime.fromisoformat(stamp) if stamp else None
    except ValueError:
        return None
    return moment if moment is not None and moment.tzinfo is not None else None


def _values(
    stated: Mapping[str, tuple[Value, ...]], configurations: Sequence[Configuration]
) -> Mapping[str, tuple[Value, ...]]:
    """The values of each parameter: those of the space that occur, in ascending order where all are numbers."""
    values_by_name: dict[str, dict[str, Value]] = {key: {} for key in stated}
    for configuration in configurations:
        for key, value in configuration.values.items():
            values_by_name.setdefault(key, {})[repr(value)] = value
    return {key: _ordered(tuple(values.values())) for key, values in values_by_name.items() if values}


def _ordered(values: tuple[Value, ...]) -> tuple[Value, ...]:
    """
    >>> _ordered((4, 1, 2.5)), _ordered(("b", "a")), _ordered((True, False))
    ((1, 2.5, 4), ('b', 'a'), (True, False))
    """
    numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
    return tuple(sorted(numbers)) if len(numbers) == len(values) else values


def in_rank_order(space: ConfigurationSpace) -> tuple[Configuration, ...]:
    """All configurations: the best one, then by the ratio to the default in shared rounds (without one, by time), those that were
    stopped early after the others, and those without a time last."""
    return tuple(
        sorted(
            space.configurations,
            key=lambda c: (
                not c.is_best, c.time_s is None, c.state == "stopped", -(c.speed_up or 0.0), c.time_s or 0.0, c.place
            ),
        )
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class RunningBest:
    """The best time after a configuration was tried. `improved`: whether that configuration is the new best."""

    configuration: Configuration
    time_s: float
    improved: bool


def running_best(space: ConfigurationSpace) -> tuple[RunningBest, ...]:
    """The best time after each configuration of the search, from the first one with a time on. Configurations that were stopped
    early, failed or are wrong do not change it."""
    best: float | None = None
    steps: list[RunningBest] = []
    for configuration in space.configurations:
        if configuration.state in ("refused", "cancelled"):
            continue
        time_s = configuration.time_s if configuration.state in ("measured", "unchecked") else None
        improved = time_s is not None and (best is None or time_s < best)
        best = time_s if improved else best
        if best is not None:
            steps.append(RunningBest(configuration, best, improved))
    return tuple(steps)


def with_code_facts(space: ConfigurationSpace, cases: Sequence[CaseFacts]) -> ConfigurationSpace:
    """The space with registers and spills from the machine code of its cases, where that was captured and read."""
    by_variant = {case.result.variant: case for case in cases if case.kernels}

    def read(configuration: Configuration) -> Configuration:
        case = by_variant.get(configuration.variant)
        if case is None:
            return configuration
        kernels = [kernel.facts for kernel in case.kernels]
        registers = [k.registers for k in kernels if k.registers is not None]
        return replace(
            configuration,
            registers=max(registers, default=configuration.registers),
            spills=max(k.spill_loads + k.spill_stores for k in kernels),
        )

    return replace(space, configurations=tuple(map(read, space.configurations)))
