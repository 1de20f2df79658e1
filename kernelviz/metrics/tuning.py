"""The result of a tuning: the fastest configuration and its gain, the failures and their reasons, and the cost."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core import BadField, Failure, Figure, Problem, Result, Run, Span, StoppedEarly, Tuning
from kernelviz.core.configuration import parted
from kernelviz.core.reasons import NotAdmitted
from kernelviz.metrics.figures import first_call_s
from kernelviz.metrics.grouping import grouped
from kernelviz.metrics.rows import Row, rows

_NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why configurations failed, and which ones. `failure`: that of the first, without the time of a wrong result. `alike`: the
    failures of the others differ from it in numbers."""

    failure: Failure
    variants: tuple[str, ...]
    alike: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """A tuning, also an unfinished one. `ranked`: the correct configurations, best first. `best`: the one to use, None while
    none is correct. `default`: the row of the default configuration, None without a result. `stopped`: those that got one block
    only, which can never be the best. `cancelled`: those without a result because the run was cancelled. `refused`: those that
    were not measured because the variant does not admit them at such sizes. `final`: the names of those that were measured again
    together at the end; empty before it."""

    problem: Problem
    variant: str
    ranked: tuple[Row, ...]
    default: Row | None
    best: Row | None
    failures: tuple[Reason, ...]
    tried: int
    failed: int
    refused: int
    cancelled: int
    stopped: int
    planned: int
    space: int
    preparing_s: float
    final: tuple[str, ...] = ()


def is_tuning(run: Run) -> bool:
    """Whether kernelviz measured the run as a tuning. A tuning of another tool has neither a default nor a checked result."""
    return run.plan.search is not None and bool(run.method.figures)


def tried(run: Run, *, finished: bool | None = None) -> Tried:
    """The result of a tuning. `finished`: whether its run has ended, by default as its status says. Errors: BadField for a run
    that is no tuning."""
    search = run.plan.search
    if search is None:
        raise BadField("run", run.id, "it is no tuning; `kernelviz tune` makes one")
    if not is_tuning(run):
        raise BadField(
            "run",
            run.id,
            f"another tool measured it, so no configuration of it is used here; `kernelviz tunings show {run.id}` shows it",
        )
    table = rows(run, ())
    ranked = ranking(table)
    default = next((row for row in table if row.is_baseline), None)
    ended = run.status == "finished" if finished is None else finished
    final = _of_final(ranked) if ended else []
    failed = [row.failure for row in table if row.failure is not None]
    cancelled = sum(f.stage == "cancelled" for f in failed)
    refused = sum(any(isinstance(r, NotAdmitted) for r in f.reasons) for f in failed)
    return Tried(
        problem=run.plan.problems[0],
        variant=search.variant,
        ranked=ranked,
        default=default,
        best=_best(final if ended else ranked, default),
        failures=failure_reasons(run.results),
        tried=len(table) - cancelled - refused,
        failed=len(failed) - cancelled - refused,
        refused=refused,
        cancelled=cancelled,
        stopped=sum(stopped_early(row.result) is not None for row in ranked),
        planned=len(run.plan.variants),
        space=search.space,
        preparing_s=sum(first_call_s(r.preparation) or 0.0 for r in run.results),
        final=tuple(row.result.variant for row in final) if len(final) < len(ranked) else (),
    )


def ranking(table: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with a correct cold time, best first: by the ratio to the default in shared rounds, which does not depend on
    when a group of configurations was measured; by the time itself if the default has none. Those that were stopped early come
    last."""
    timed = [row for row in table if row.figure is not None]
    return tuple(
        sorted(timed, key=lambda row: (stopped_early(row.result) is not None, -(row.speed_up or 0.0), row.time_s))
    )


def stopped_early(result: Result) -> StoppedEarly | None:
    """The note that the case got one block only; None if it was measured to the end."""
    notes = result.conditions.notes if result.conditions is not None else ()
    return next((note for note in notes if isinstance(note, StoppedEarly)), None)


def _of_final(ranked: Sequence[Row]) -> list[Row]:
    """The rows that share the last round, in which the best configurations were measured again together."""
    of = {row.result.variant: _last_round(row.figure) for row in ranked}
    last = max((n for n in of.values() if n is not None), default=None)
    return [row for row in ranked if of[row.result.variant] == last]


def _last_round(figure: Figure | None) -> int | None:
    numbers = [b.round for b in (figure.blocks or ()) if b.round is not None] if figure else []
    return max(numbers, default=None)


def _best(candidates: Sequence[Row], default: Row | None) -> Row | None:
    """The first, if it is faster than the default by the verdict rule; else the default.

    Of a hundred equal configurations the fastest one looks faster than it is.
    """
    candidates = [row for row in candidates if stopped_early(row.result) is None]
    if not candidates:
        return None
    first = candidates[0]
    if default is None or default.figure is None or first is default:
        return first
    return first if first.verdict is not None and first.verdict.kind == "faster" else default


def failure_reasons(results: Sequence[Result]) -> tuple[Reason, ...]:
    """The reasons of the failures that were not cancelled, the most frequent first; those that differ only in numbers as one."""
    failures = [(r.variant, _without_time(r.outcome)) for r in results if isinstance(r.outcome, Failure)]
    groups = grouped(
        ((variant, failure) for variant, failure in failures if failure.stage != "cancelled"),
        key=lambda pair: _NUMBER.sub("#", msgspec.json.encode(pair[1]).decode()),
    )
    return tuple(
        Reason(group[0][1], tuple(name for name, _ in group), len({failure for _, failure in group}) > 1)
        for group in sorted(groups.values(), key=len, reverse=True)
    )


def _without_time(failure: Failure) -> Failure:
    return Failure(stage=failure.stage, reasons=failure.reasons, message=" ".join(failure.message.split()))


def tuning_of(run: Run, tried: Tried, *, created_at: str, seconds: float) -> Tuning | None:
    """The part of a tuning that is stored for later runs; None if no configuration is correct."""
    best, default = tried.best, tried.default
    if best is None or best.figure is None:
        return None
    of_default = default.figure if default is not None else None
    return Tuning(
        problem=msgspec.structs.replace(tried.problem, data="normal"),
        variant=tried.variant,
        device_uuid=run.environment.device.uuid,
        device=run.environment.device.name,
        configuration=_values(best.result.variant),
        default=_values(run.plan.baseline),
        run_id=run.id,
        created_at=created_at,
        time_s=_span(best.figure),
        default_s=_span(of_default) if of_default is not None else None,
        speed_up=Span(estimate=1.0, low=1.0, high=1.0) if best is default else speed_up_span(best),
        space=tried.space,
        tried=tried.tried,
        failed=tried.failed,
        seconds=seconds,
        preparing_s=tried.preparing_s,
        source_digest=best.result.source_digest,
    )


def speed_up_span(row: Row) -> Span | None:
    """The time of the default over this one, with the interval if their shared rounds give one."""
    if row.speed_up is None:
        return None
    ratio = row.verdict.ratio if row.verdict is not None else None
    if ratio is None or ratio.low is None or ratio.high is None:
        return Span(estimate=row.speed_up)
    return Span(estimate=row.speed_up, low=1 / ratio.high, high=1 / ratio.low)


def _values(name: str) -> dict[str, int]:
    return parted(name)[1] or {}


def _span(figure: Figure) -> Span:
    return Span(estimate=figure.estimate, low=figure.low, high=figure.high)


def best_names(table: Sequence[Row], count: int) -> tuple[str, ...]:
    """The `count` best variants without the baseline, by their rank in `ranking`; over several problems by the sum of ranks."""
    problems = grouped(table, key=lambda row: row.result.problem.key).values()
    ranks = [
        (row.result.variant, rank)
        for group in problems
        for rank, row in enumerate(ranking(group))
        if not row.is_baseline and stopped_early(row.result) is None
    ]
    by_variant = grouped(ranks, key=lambda pair: pair[0])
    # A variant without a time at some size comes after those that have one at all sizes.
    return tuple(sorted(by_variant, key=lambda v: (-len(by_variant[v]), sum(rank for _, rank in by_variant[v]))))[
        :count
    ]
