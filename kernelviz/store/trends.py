"""The times of every case over all runs, for trends: a table much smaller than the results, which can be rebuilt from them.

The times of kernels are read from the results themselves, without their samples, which are nearly all of a result.
"""

import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert, select

from kernelviz.core import Figure, Method, Plan, Problem, Result, RunTimes, Struct, Timing
from kernelviz.core.chunks import parts
from kernelviz.core.configuration import configuration_text
from kernelviz.core.problem import case_key
from kernelviz.store.database import TOGETHER, DamagedRow, StorePart, equal
from kernelviz.store.result_encoding import Damaged, plain, unpacked
from kernelviz.store.run_rows import AnyRow, RunHeader, header_of
from kernelviz.store.tables import results, runs, times


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A case's device times in one run, cold and warm as (estimate, low, high). `setup`: clock mode (with the seconds of a
    sustained load that is not the usual one), timer and launch, which must be equal for times to be comparable; `digest`: of the
    variant's source; `configuration`: with which it was bound."""

    run_id: str
    at: str
    problem: Problem
    variant: str
    setup: str
    digest: str
    configuration: str
    cold_s: tuple[float, float | None, float | None] | None
    warm_s: tuple[float, float | None, float | None] | None

    @property
    def case_key(self) -> str:
        return case_key(self.problem, self.variant)


class CaseTimes(StorePart):
    """The times of all cases and of their kernels."""

    def times(self, device_uuid: str, *, op: str | None = None, case_key: str | None = None) -> list[TimeRow]:
        """All times on that device, case by case, each case's runs in the order of time; without deleted runs."""
        wanted = equal({times.c.device_uuid: device_uuid, times.c.op: op, times.c.case_key: case_key})
        chosen = (
            select(times, runs.c.created_at)
            .join(runs, runs.c.id == times.c.run_id)
            .where(*wanted, runs.c.deleted_at.is_(None))
            .order_by(times.c.case_key, runs.c.created_at, runs.c.id)
        )
        with self._database.read() as connection:
            rows = connection.execute(chosen).all()
        return [one for row in rows if (one := self._time_row(row)) is not None]

    def _time_row(self, row: AnyRow) -> TimeRow | None:
        """None for a damaged row, which is noted."""
        problem = self._readable(row.problem, Problem, f"the times of {row.case_key} in run {row.run_id}")
        if problem is None:
            return None
        return TimeRow(
            run_id=row.run_id,
            at=row.created_at,
            problem=problem,
            variant=row.variant,
            setup=row.setup,
            digest=row.digest,
            configuration=row.configuration,
            cold_s=None if row.cold_s is None else (row.cold_s, row.cold_low_s, row.cold_high_s),
            warm_s=None if row.warm_s is None else (row.warm_s, row.warm_low_s, row.warm_high_s),
        )

    def kernel_times(self, device_uuid: str, limit: int) -> tuple[RunTimes, ...]:
        """The kernels' times of the newest runs of a device that are not deleted, the newest first."""
        newest = (
            select(runs)
            .where(runs.c.device_uuid == device_uuid, runs.c.deleted_at.is_(None))
            .order_by(runs.c.created_at.desc(), runs.c.id.desc())
            .limit(limit)
        )
        timed = select(results.c.body).where(results.c.stage == "").order_by(results.c.position)
        run_times: list[RunTimes] = []
        with self._database.read() as connection:
            for row in connection.execute(newest).all():
                header = self._readable(row.header, RunHeader, f"run {row.id}")
                if header is None:
                    continue
                bodies = connection.scalars(timed.where(results.c.run_id == row.id))
                times_s = tuple(time for body in bodies for time in _kernel_times(body))
                run_times.append(
                    RunTimes(
                        run_id=row.id, title=row.title, op=row.op, created_at=row.created_at, variants=header.plan.variants,
                        times_s=times_s,
                    )
                )  # fmt: skip
        return tuple(run_times)


class _Kernel(Struct, frozen=True, kw_only=True):
    duration_s: float | None = None


class _Estimate(Struct, frozen=True, kw_only=True):
    estimate: float


class _Outcome(Struct, frozen=True, kw_only=True):
    kind: str
    device_cold_s: _Estimate | None = None


class _Result(Struct, frozen=True, kw_only=True):
    variant: str
    outcome: _Outcome
    kernels: tuple[_Kernel, ...] = ()


def _kernel_times(body: bytes) -> list[tuple[str, float]]:
    """The variant with the time of each of its kernels; with its cold time where the kernels are unknown. Empty for a result that
    cannot be read."""
    try:
        result = msgspec.json.decode(plain(body), type=_Result)
    except (zlib.error, msgspec.MsgspecError, ValueError, RecursionError):
        return []
    cold = result.outcome.device_cold_s
    durations_s = [k.duration_s for k in result.kernels if k.duration_s is not None]
    return [(result.variant, duration_s) for duration_s in durations_s or ([cold.estimate] if cold else [])]


def put_times(
    connection: Connection, run_id: str, device_uuid: str, method: Method, plan: Plan, given: Sequence[Result]
) -> None:
    """Store the times of correct results in place of earlier ones of the same cases; a result without a time removes them."""
    for some in parts([r.case.key for r in given], TOGETHER):
        connection.execute(delete(times).where(times.c.run_id == run_id, times.c.case_key.in_(some)))
    rows = times_rows(run_id, device_uuid, method, plan, given)
    if rows:
        connection.execute(insert(times), rows)


def times_rows(
    run_id: str, device_uuid: str, method: Method, plan: Plan, given: Sequence[Result]
) -> list[dict[str, Any]]:
    """The rows of the table for these results; none for a tuning, because trends do not follow its hundred configurations."""
    if plan.search is not None:
        return []
    return [_values(run_id, device_uuid, method, result) for result in given if result.timing is not None]


def rebuild(connection: Connection) -> None:
    """Fill the table from the results."""
    for row in connection.execute(select(runs.c.id, runs.c.device_uuid, runs.c.header)).all():
        bodies = connection.scalars(select(results.c.body).where(results.c.run_id == row.id)).all()
        # Without what is damaged: it is named when the run is read.
        with suppress(DamagedRow):
            header = header_of(row)
            read: list[Result] = []
            for body in bodies:
                with suppress(Damaged):
                    read.append(unpacked(body))
            put_times(connection, row.id, row.device_uuid, header.method, header.plan, read)


def _values(run_id: str, device_uuid: str, method: Method, result: Result) -> dict[str, Any]:
    timing = result.timing or Timing()
    cold, warm = timing.device_cold_s, timing.device_warm_s
    either = cold or warm
    load = f":{method.load_s:g}s" if isinstance(method.load_s, float) else ""
    clock = None if method.clock is None else f"{method.clock}{load}"
    setup = (clock, *((either.timer, either.launch) if either else ()))
    return {
        "run_id": run_id,
        "case_key": result.case.key,
        "device_uuid": device_uuid,
        "op": result.problem.op,
        "variant": result.variant,
        "problem": msgspec.json.encode(result.problem, order="deterministic"),
        "setup": " ".join(part for part in setup if part),
        "digest": result.source_digest or "",
        "configuration": configuration_text(result.configuration or {}),
        **_columns("cold", cold),
        **_columns("warm", warm),
    }


def _columns(name: str, figure: Figure | None) -> dict[str, float | None]:
    return {
        f"{name}_s": figure.estimate if figure else None,
        f"{name}_low_s": figure.low if figure else None,
        f"{name}_high_s": figure.high if figure else None,
    }
