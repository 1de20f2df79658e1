"""Selftests of devices."""

from collections.abc import Iterator

import msgspec
from sqlalchemy import delete, insert, select

from kernelviz.core import Selftest
from kernelviz.store.database import Database
from kernelviz.store.tables import selftests


class Selftests:
    """The selftests of all devices."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, selftest: Selftest, *, only_new: bool = False) -> bool:
        """Store a selftest in place of one of its id; with `only_new` only if there is none. Return whether it was stored."""
        same = selftests.c.id == selftest.id
        with self._database.write() as connection:
            if only_new and connection.scalar(select(selftests.c.id).where(same)) is not None:
                return False
            connection.execute(delete(selftests).where(same))
            connection.execute(
                insert(selftests).values(
                    id=selftest.id,
                    device_uuid=selftest.environment.device.uuid,
                    created_at=selftest.created_at,
                    body=msgspec.json.encode(selftest),
                )
            )
            return True

    def newest(self, device_uuid: str, limit: int) -> tuple[Selftest, ...]:
        """Selftests of that device, the newest first."""
        newest = select(selftests.c.body).where(selftests.c.device_uuid == device_uuid)
        newest = newest.order_by(selftests.c.created_at.desc(), selftests.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return tuple(msgspec.json.decode(body, type=Selftest) for body in connection.scalars(newest))

    def get(self, selftest_id: str) -> Selftest | None:
        """The selftest with that id, None where there is none."""
        with self._database.read() as connection:
            body = connection.scalar(select(selftests.c.body).where(selftests.c.id == selftest_id))
        return None if body is None else msgspec.json.decode(body, type=Selftest)

    def every(self) -> Iterator[Selftest]:
        """Every selftest of every device, one at a time, the oldest first."""
        with self._database.read() as connection:
            for body in connection.scalars(select(selftests.c.body).order_by(selftests.c.created_at, selftests.c.id)):
                yield msgspec.json.decode(body, type=Selftest)
