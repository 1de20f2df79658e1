"""Inspections of cases: the newest of each case on each device, and at most MOST altogether."""

from collections.abc import Iterator

import msgspec
from sqlalchemy import delete, insert, select

from kernelviz.core import Inspection
from kernelviz.store.database import Database
from kernelviz.store.tables import inspections

MOST = 256
"""Most stored inspections; one has up to 110 kB, all at most 28 MB."""


class Inspections:
    """The inspections of all devices."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, inspection: Inspection) -> None:
        """Store an inspection in place of an earlier one of the same case and device; beyond MOST the oldest are removed."""
        uuid = inspection.environment.device.uuid
        same = (inspections.c.device_uuid == uuid, inspections.c.case_key == inspection.case_key)
        newest = select(inspections.c.created_at).order_by(inspections.c.created_at.desc()).offset(MOST - 1).limit(1)
        with self._database.write() as connection:
            connection.execute(delete(inspections).where(*same))
            connection.execute(
                insert(inspections).values(
                    device_uuid=uuid,
                    case_key=inspection.case_key,
                    created_at=inspection.created_at,
                    body=msgspec.json.encode(inspection),
                )
            )
            last = connection.scalar(newest)
            if last is not None:
                connection.execute(delete(inspections).where(inspections.c.created_at < last))

    def get(self, device_uuid: str, case_key: str) -> Inspection | None:
        """The newest inspection of the case on that device, None where none is stored."""
        query = select(inspections.c.body).where(
            inspections.c.device_uuid == device_uuid, inspections.c.case_key == case_key
        )
        with self._database.read() as connection:
            body = connection.scalar(query)
        return None if body is None else msgspec.json.decode(body, type=Inspection)

    def every(self) -> Iterator[Inspection]:
        """Every inspection, one at a time, the oldest first, so that storing them in this order keeps the newest."""
        with self._database.read() as connection:
            for body in connection.scalars(select(inspections.c.body).order_by(inspections.c.created_at)):
                yield msgspec.json.decode(body, type=Inspection)
