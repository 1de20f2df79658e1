"""What is kept beside runs, roofs, selftests and inspections, as a whole: for backups."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec
from sqlalchemy import insert, select

from kernelviz.core.inspection import Inspection
from kernelviz.core.run import Roof
from kernelviz.core.selftest import Selftest
from kernelviz.store.database import Database
from kernelviz.store.tables import inspections, roofs, selftests


def every_roof(database: Database) -> Iterator[tuple[str, Roof]]:
    """Every roof of every device with its device's uuid, in the order of measuring."""
    kept = select(roofs.c.device_uuid, roofs.c.body).order_by(roofs.c.measured_at, roofs.c.id)
    with database.read() as connection:
        for row in connection.execute(kept):
            yield row.device_uuid, msgspec.json.decode(row.body, type=Roof)


def every_selftest(database: Database) -> Iterator[Selftest]:
    with database.read() as connection:
        for body in connection.scalars(select(selftests.c.body).order_by(selftests.c.created_at, selftests.c.id)):
            yield msgspec.json.decode(body, type=Selftest)


def every_inspection(database: Database) -> Iterator[Inspection]:
    """The oldest first, so that keeping them in this order keeps the newest."""
    with database.read() as connection:
        for body in connection.scalars(select(inspections.c.body).order_by(inspections.c.created_at)):
            yield msgspec.json.decode(body, type=Inspection)


def add_roof(database: Database, device_uuid: str, roof: Roof) -> bool:
    """Keep a roof unless the same one is kept already; whether it was new."""
    body = msgspec.json.encode(roof)
    same = select(roofs.c.id).where(roofs.c.device_uuid == device_uuid, roofs.c.body == body).limit(1)
    with database.write() as connection:
        if connection.scalar(same) is not None:
            return False
        values = {"name": roof.name, "precision": roof.precision or "", "measured_at": roof.measured_at, "body": body}
        connection.execute(insert(roofs).values(device_uuid=device_uuid, **values))
        return True


def add_selftest(database: Database, made: Selftest) -> bool:
    """Keep a selftest unless one of its id is kept already; whether it was new."""
    values = {
        "device_uuid": made.environment.device.uuid,
        "created_at": made.created_at,
        "body": msgspec.json.encode(made),
    }
    with database.write() as connection:
        if connection.scalar(select(selftests.c.id).where(selftests.c.id == made.id)) is not None:
            return False
        connection.execute(insert(selftests).values(id=made.id, **values))
        return True
