"""The best configuration of each variant for each problem on each device; a newer tuning replaces an older one."""

from collections.abc import Sequence

import msgspec
from sqlalchemy import ColumnElement, and_, delete, insert, select

from kernelviz.core import Tuning
from kernelviz.core.tuning import tuning_key
from kernelviz.store.database import Database
from kernelviz.store.tables import tunings


class Tunings:
    """The best configurations on all devices."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, tuning: Tuning, *, only_newer: bool = False) -> bool:
        """Store a tuning in place of an earlier one of the same variant, problem and device; with `only_newer` not where the
        stored one is as new. Returns whether it was stored."""
        with self._database.write() as connection:
            known = connection.scalar(select(tunings.c.created_at).where(_same(tuning)))
            if only_newer and known is not None and known >= tuning.created_at:
                return False
            connection.execute(delete(tunings).where(_same(tuning)))
            connection.execute(
                insert(tunings).values(
                    device_uuid=tuning.device_uuid,
                    op=tuning.problem.op,
                    variant=tuning.variant,
                    problem_key=tuning_key(tuning.problem),
                    created_at=tuning.created_at,
                    run_id=tuning.run_id,
                    body=msgspec.json.encode(tuning),
                )
            )
            return True

    def find(self, device_uuid: str | None = None, op: str | None = None) -> tuple[Tuning, ...]:
        """All stored tunings, or those of a device and an op, ordered by op, variant and problem."""
        chosen = select(tunings.c.body).order_by(
            tunings.c.op, tunings.c.variant, tunings.c.problem_key, tunings.c.device_uuid
        )
        if device_uuid is not None:
            chosen = chosen.where(tunings.c.device_uuid == device_uuid)
        if op is not None:
            chosen = chosen.where(tunings.c.op == op)
        with self._database.read() as connection:
            return tuple(msgspec.json.decode(body, type=Tuning) for body in connection.scalars(chosen))

    def drop(self, gone: Sequence[Tuning]) -> None:
        """Remove these tunings."""
        with self._database.write() as connection:
            for tuning in gone:
                connection.execute(delete(tunings).where(_same(tuning)))


def _same(tuning: Tuning) -> ColumnElement[bool]:
    """The rows of the same variant, problem and device."""
    return and_(
        tunings.c.device_uuid == tuning.device_uuid,
        tunings.c.op == tuning.problem.op,
        tunings.c.variant == tuning.variant,
        tunings.c.problem_key == tuning_key(tuning.problem),
    )
