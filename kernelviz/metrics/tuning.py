"""What a tuning says: who is fastest by how much, what failed and why, and what it cost. Derived from its run's results."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.core import BadField, Failure, Figure, Problem, Result, Run, Span, Tuning
from kernelviz.core.configuration import parted
from kernelviz.core.reasons import NotAdmitted
from kernelviz.metrics.figures import first_call_s
from kernelviz.metrics.rows import Row, rows

_NUMBER = re.compile(r"\d+(\.\d+)?(e[+-]?\d+)?")


@dataclass(frozen=True, slots=True)
class Reason:
    """Why configurations failed, and which they are. `failure`: that of the first of them, without the time of a wrong one;
    `alike`: the others' have other numbers."""

    failure: Failure
    variants: tuple[str, ...]
    alike: bool = False


@dataclass(frozen=True, slots=True)
class Tried:
    """A tuning as far as it came. `ranked`: the correct ones, best first; `best`: the one to be used, None while none is correct.

    `default` is the default configuration's row, None without a result. `cancelled`: given up before they had one;
    `refused`: not tried, because the variant says that they are not for such sizes.
    """

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
    planned: int
    space: int
    preparing_s: float


def tried(run: Run, *, finished: bool | None = None) -> Tried:
    """What a tuning found. `finished`: its run came to its end; None: as its status says. Errors: BadField for another run."""
    search = run.plan.search
    if search is None:
        raise BadField("run", run.id, "it is no tuning; `kernelviz tune` makes one")
    table = rows(run, ())
    ranked = ranking(table)
    default = next((row for row in table if row.is_baseline), None)
    ended = run.status == "finished" if finished is None else finished
    failed = [row.failure for row in table if row.failure is not None]
    cancelled = sum(f.stage == "cancelled" for f in failed)
    refused = sum(any(isinstance(r, NotAdmitted) for r in f.reasons) for f in failed)
    return Tried(
        problem=run.plan.problems[0],
        variant=search.variant,
        ranked=ranked,
        default=default,
        best=_best(_of_final(ranked) if ended else ranked, default),
        failures=_reasons(run.results),
        tried=len(table) - cancelled - refused,
        failed=len(failed) - cancelled - refused,
        refused=refused,
        cancelled=cancelled,
        planned=len(run.plan.variants),
        space=search.space,
        preparing_s=sum(first_call_s(r.preparation) or 0.0 for r in run.results),
    )


def ranking(table: Sequence[Row]) -> tuple[Row, ...]:
    """The rows with a correct cold time, best first: by the ratio to the default in shared rounds, which the minutes between two
    groups of configurations cannot change; by the time itself where the default has none."""
    timed = [row for row in table if row.figure is not None]
    return tuple(sorted(timed, key=lambda row: (-(row.speed_up or 0.0), row.figure.estimate if row.figure else 0.0)))


def _of_final(ranked: Sequence[Row]) -> list[Row]:
    """Those that share the very last round: the final, in which the best of the sweep were measured again, together."""
    of = {row.result.variant: _last_round(row.figure) for row in ranked}
    last = max((n for n in of.values() if n is not None), default=None)
    return [row for row in ranked if of[row.result.variant] == last]


def _last_round(figure: Figure | None) -> int | None:
    numbers = [b.round for b in (figure.blocks or ()) if b.round is not None] if figure else []
    return max(numbers, default=None)


def _best(candidates: Sequence[Row], default: Row | None) -> Row | None:
    """The first, if the verdict rule calls it faster than the default; else the default.

    The fastest of a hundred that are equal looks faster than it is.
    """
    if not candidates:
        return None
    first = candidates[0]
    if default is None or default.figure is None or first is default:
        return first
    return first if first.verdict is not None and first.verdict.kind == "faster" else default


def _reasons(results: Sequence[Result]) -> tuple[Reason, ...]:
    """Each reason once, whatever numbers it holds, the most frequent first; cancelled ones are none."""
    found: dict[str, list[tuple[str, Failure]]] = {}
    for result in results:
        if isinstance(result.outcome, Failure) and result.outcome.stage != "cancelled":
            message = " ".join(result.outcome.message.split())
            failure = Failure(stage=result.outcome.stage, reasons=result.outcome.reasons, message=message)
            kind = _NUMBER.sub("#", msgspec.json.encode(failure).decode())
            found.setdefault(kind, []).append((result.variant, failure))
    return tuple(
        Reason(told[0][1], tuple(name for name, _ in told), len({failure for _, failure in told}) > 1)
        for told in sorted(found.values(), key=lambda told: -len(told))
    )


def tuning_of(run: Run, found: Tried, *, created_at: str, seconds: float) -> Tuning | None:
    """What is to be kept of a tuning; None where no configuration is correct."""
    best, default = found.best, found.default
    if best is None or best.figure is None:
        return None
    of_default = default.figure if default is not None else None
    return Tuning(
        problem=msgspec.structs.replace(found.problem, data="normal"),
        variant=found.variant,
        device_uuid=run.environment.device.uuid,
        device=run.environment.device.name,
        configuration=_values(best.result.variant),
        default=_values(run.plan.baseline),
        run_id=run.id,
        created_at=created_at,
        time_s=_span(best.figure),
        default_s=_span(of_default) if of_default is not None else None,
        speed_up=Span(estimate=1.0, low=1.0, high=1.0) if best is default else speed_up_span(best),
        space=found.space,
        tried=found.tried,
        failed=found.failed,
        seconds=seconds,
        preparing_s=found.preparing_s,
        source_digest=best.result.source_digest,
    )


def speed_up_span(row: Row) -> Span | None:
    """The default's time over this one's, with its interval where their shared rounds give one."""
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
    places: dict[str, list[int]] = {}
    by_problem: dict[str, list[Row]] = {}
    for row in table:
        by_problem.setdefault(row.result.problem.key, []).append(row)
    for group in by_problem.values():
        for place, row in enumerate(ranking(group)):
            if not row.is_baseline:
                places.setdefault(row.result.variant, []).append(place)
    # Who has no time at some size comes behind those that have one at all sizes.
    return tuple(sorted(places, key=lambda name: (-len(places[name]), sum(places[name]))))[:count]
