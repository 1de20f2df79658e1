"""The measured roofs of devices, including all earlier ones."""

import msgspec
from sqlalchemy import insert, select

from kernelviz.core import Roof
from kernelviz.store.database import Database
from kernelviz.store.tables import roofs


class Roofs:
    """The roofs of all devices."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def put(self, device_uuid: str, roof: Roof, *, only_new: bool = False) -> bool:
        """Store a roof; with `only_new` only where the same roof is not stored yet. Returns whether it was stored."""
        body = msgspec.json.encode(roof)
        values = {"name": roof.name, "precision": roof.precision or "", "measured_at": roof.measured_at, "body": body}
        same = select(roofs.c.id).where(roofs.c.device_uuid == device_uuid, roofs.c.body == body).limit(1)
        with self._database.write() as connection:
            if only_new and connection.scalar(same) is not None:
                return False
            connection.execute(insert(roofs).values(device_uuid=device_uuid, **values))
            return True

    def newest(self, device_uuid: str) -> tuple[Roof, ...]:
        """The newest roof of each kind (Roof.key), in the order in which they were first measured."""
        decoded = self.of_device(device_uuid)
        # Roofs of an earlier version without level and unit are replaced by newer roofs of the same kind with one of them.
        replaced = {(roof.name, roof.precision) for roof in decoded if roof.level or roof.unit}
        newest = {
            roof.key: roof for roof in decoded if roof.level or roof.unit or (roof.name, roof.precision) not in replaced
        }
        return tuple(newest.values())

    def of_device(self, device_uuid: str) -> tuple[Roof, ...]:
        """All roofs that were measured on the device, in the order of measuring."""
        return tuple(roof for _, roof in self.every(device_uuid))

    def every(self, device_uuid: str | None = None) -> tuple[tuple[str, Roof], ...]:
        """Every roof of every device, or of one, with its device's uuid, in the order of measuring."""
        # Not in the order of writing, because restoring a backup adds older roofs.
        stored = select(roofs.c.device_uuid, roofs.c.body).order_by(roofs.c.measured_at, roofs.c.id)
        if device_uuid is not None:
            stored = stored.where(roofs.c.device_uuid == device_uuid)
        with self._database.read() as connection:
            rows = connection.execute(stored)
            return tuple((row.device_uuid, msgspec.json.decode(row.body, type=Roof)) for row in rows)
