"""Inspections of cases: the newest of each case on each device, and so many of them at most."""

from __future__ import annotations

import msgspec
from sqlalchemy import delete, insert, select

from kernelviz.core.inspection import Inspection
from kernelviz.store.database import Database
from kernelviz.store.tables import inspections

KEPT = 256
"""One takes up to 110 kB: together at most 28 MB."""


def put_inspection(database: Database, made: Inspection) -> None:
    """Keep it instead of an earlier one of the same case and device; beyond KEPT the oldest are dropped."""
    uuid = made.environment.device.uuid
    same = (inspections.c.device_uuid == uuid, inspections.c.case_key == made.case_key)
    newest = select(inspections.c.created_at).order_by(inspections.c.created_at.desc()).offset(KEPT - 1).limit(1)
    with database.write() as connection:
        connection.execute(delete(inspections).where(*same))
        body = msgspec.json.encode(made)
        values = {"device_uuid": uuid, "case_key": made.case_key, "created_at": made.created_at, "body": body}
        connection.execute(insert(inspections).values(**values))
        last = connection.scalar(newest)
        if last is not None:
            connection.execute(delete(inspections).where(inspections.c.created_at < last))


def inspection(database: Database, device_uuid: str, case_key: str) -> Inspection | None:
    """The one that is kept of that case on that device."""
    asked = select(inspections.c.body).where(
        inspections.c.device_uuid == device_uuid, inspections.c.case_key == case_key
    )
    with database.read() as connection:
        body = connection.scalar(asked)
    return None if body is None else msgspec.json.decode(body, type=Inspection)
