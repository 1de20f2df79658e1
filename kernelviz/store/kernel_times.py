"""The times of the kernels of recent runs, read without samples, which are nearly all of a result."""

import msgspec
from sqlalchemy import select

from kernelviz.core import RunTimes, Struct
from kernelviz.store.database import Database
from kernelviz.store.result_encoding import plain
from kernelviz.store.tables import results, runs


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


_DECODER = msgspec.json.Decoder(_Result)


def kernel_times(database: Database, device_uuid: str, limit: int) -> tuple[RunTimes, ...]:
    """The kernels' times of the newest runs of a device that are not deleted, the newest first."""
    newest = select(runs.c.id, runs.c.title, runs.c.op, runs.c.created_at)
    newest = newest.where(runs.c.device_uuid == device_uuid, runs.c.deleted_at.is_(None))
    newest = newest.order_by(runs.c.created_at.desc(), runs.c.id.desc()).limit(limit)
    run_times = []
    with database.read() as connection:
        for row in connection.execute(newest).all():
            timed = select(results.c.body).where(results.c.run_id == row.id, results.c.stage == "")
            bodies = connection.scalars(timed.order_by(results.c.position)).all()
            times = tuple(time for body in bodies for time in _times(body))
            run_times.append(
                RunTimes(run_id=row.id, title=row.title, op=row.op, created_at=row.created_at, times_s=times)
            )
    return tuple(run_times)


def _times(body: bytes) -> list[tuple[str, float]]:
    result = _DECODER.decode(plain(body))
    kernels = [k.duration_s for k in result.kernels if k.duration_s is not None]
    if kernels:
        return [(result.variant, duration_s) for duration_s in kernels]
    cold = result.outcome.device_cold_s
    return [(result.variant, cold.estimate)] if cold is not None else []
