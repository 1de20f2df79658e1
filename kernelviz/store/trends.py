"""The times of every case over all runs, for trends: a table much smaller than the results, which can be rebuilt from them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, delete, insert, select

from kernelviz.core import Figure, Method, Plan, Problem, Result, Timing
from kernelviz.core.chunks import parts
from kernelviz.core.configuration import configuration_text
from kernelviz.core.problem import case_key
from kernelviz.store.database import TOGETHER, Database
from kernelviz.store.result_encoding import unpacked
from kernelviz.store.run_rows import RunHeader
from kernelviz.store.tables import results, runs, times


@dataclass(frozen=True, slots=True)
class TimeRow:
    """A case's device times in one run, cold and warm as (estimate, low, high). `setup`: clock mode, timer and launch, which
    must be equal for times to be comparable; `digest`: of the variant's source; `configuration`: with which it was bound."""

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


class CaseTimes:
    """The times of all cases."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def times(self, device_uuid: str, *, op: str | None = None, case_key: str | None = None) -> list[TimeRow]:
        """All times on that device, case by case, each case's runs in the order of time; without deleted runs."""
        chosen = select(times, runs.c.created_at).join(runs, runs.c.id == times.c.run_id)
        chosen = chosen.where(times.c.device_uuid == device_uuid, runs.c.deleted_at.is_(None))
        if op is not None:
            chosen = chosen.where(times.c.op == op)
        if case_key is not None:
            chosen = chosen.where(times.c.case_key == case_key)
        problems: dict[bytes, Problem] = {}
        rows = []
        with self._database.read() as connection:
            for row in connection.execute(chosen.order_by(times.c.case_key, runs.c.created_at, runs.c.id)):
                if row.problem not in problems:
                    problems[row.problem] = msgspec.json.decode(row.problem, type=Problem)
                rows.append(
                    TimeRow(
                        run_id=row.run_id,
                        at=row.created_at,
                        problem=problems[row.problem],
                        variant=row.variant,
                        setup=row.setup,
                        digest=row.digest,
                        configuration=row.configuration,
                        cold_s=_three(row.cold_s, row.cold_low_s, row.cold_high_s),
                        warm_s=_three(row.warm_s, row.warm_low_s, row.warm_high_s),
                    )
                )
        return rows


def put_times(
    connection: Connection, run_id: str, device_uuid: str, method: Method, plan: Plan, given: Sequence[Result]
) -> None:
    """Store the times of correct results in place of earlier ones of the same cases; a result without a time removes them.

    Tunings are left out, because trends do not follow their hundred configurations.
    """
    if plan.search is not None:
        return
    keys = [r.case.key for r in given]
    for some in parts(keys, TOGETHER):
        connection.execute(delete(times).where(times.c.run_id == run_id, times.c.case_key.in_(some)))
    rows = times_rows(run_id, device_uuid, method, plan, given)
    if rows:
        connection.execute(insert(times), rows)


def times_rows(
    run_id: str, device_uuid: str, method: Method, plan: Plan, given: Sequence[Result]
) -> list[dict[str, Any]]:
    """The rows of the table for these results; see `put_times`."""
    if plan.search is not None:
        return []
    return [_values(run_id, device_uuid, method, result) for result in given if result.timing is not None]


def rebuild(connection: Connection) -> None:
    """Fill the table from the results."""
    header = msgspec.json.Decoder(RunHeader)
    for row in connection.execute(select(runs.c.id, runs.c.device_uuid, runs.c.header)).all():
        bodies = connection.scalars(select(results.c.body).where(results.c.run_id == row.id)).all()
        of = header.decode(row.header)
        put_times(connection, row.id, row.device_uuid, of.method, of.plan, [unpacked(b) for b in bodies])


def _values(run_id: str, device_uuid: str, method: Method, result: Result) -> dict[str, Any]:
    timing = result.timing or Timing()
    cold, warm = timing.device_cold_s, timing.device_warm_s
    either = cold or warm
    setup = (method.clock, *((either.timer, either.launch) if either else ()))
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


def _three(
    estimate: float | None, low: float | None, high: float | None
) -> tuple[float, float | None, float | None] | None:
    return None if estimate is None else (estimate, low, high)
