"""The best configuration of each variant for each problem on each device: the newest tuning of the same replaces it."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
from sqlalchemy import and_, delete, insert, select

from kernelviz.core.tuning import Tuning, tuning_key
from kernelviz.store.database import Database
from kernelviz.store.tables import tunings


def put_tuning(database: Database, made: Tuning, *, only_newer: bool = False) -> bool:
    """Keep it instead of an earlier one of the same; whether it was kept. `only_newer`: unless the one that is there is newer, or
    the same."""
    same = and_(
        tunings.c.device_uuid == made.device_uuid,
        tunings.c.op == made.problem.op,
        tunings.c.variant == made.variant,
        tunings.c.problem_key == tuning_key(made.problem),
    )
    with database.write() as connection:
        known = connection.scalar(select(tunings.c.created_at).where(same))
        if only_newer and known is not None and known >= made.created_at:
            return False
        connection.execute(delete(tunings).where(same))
        connection.execute(
            insert(tunings).values(
                device_uuid=made.device_uuid,
                op=made.problem.op,
                variant=made.variant,
                problem_key=tuning_key(made.problem),
                created_at=made.created_at,
                run_id=made.run_id,
                body=msgspec.json.encode(made),
            )
        )
        return True


def tunings_of(database: Database, device_uuid: str | None = None, op: str | None = None) -> tuple[Tuning, ...]:
    """Every tuning that is kept, or those of a device and an op: by op, variant and problem."""
    chosen = select(tunings.c.body).order_by(
        tunings.c.op, tunings.c.variant, tunings.c.problem_key, tunings.c.device_uuid
    )
    if device_uuid is not None:
        chosen = chosen.where(tunings.c.device_uuid == device_uuid)
    if op is not None:
        chosen = chosen.where(tunings.c.op == op)
    with database.read() as connection:
        return tuple(msgspec.json.decode(body, type=Tuning) for body in connection.scalars(chosen))


def drop_tunings(database: Database, gone: Sequence[Tuning]) -> None:
    """Forget them."""
    with database.write() as connection:
        for one in gone:
            connection.execute(
                delete(tunings).where(
                    tunings.c.device_uuid == one.device_uuid,
                    tunings.c.op == one.problem.op,
                    tunings.c.variant == one.variant,
                    tunings.c.problem_key == tuning_key(one.problem),
                )
            )
