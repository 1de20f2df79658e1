"""Records of devices beside their runs: roofs, selftests, inspections, and the best configurations that tuning found."""

from collections.abc import Iterator, Sequence

import msgspec
from sqlalchemy import ColumnElement, and_, delete, insert, select

from kernelviz.core import Inspection, Roof, Selftest, Tuning
from kernelviz.core.tuning import tuning_key
from kernelviz.metrics.roof_checks import newest_of
from kernelviz.store.database import StorePart, equal
from kernelviz.store.tables import inspections, roofs, selftests, tunings

MOST_INSPECTIONS = 256
"""Most stored inspections; one has up to 110 kB, all at most 28 MB."""


class Roofs(StorePart):
    """The measured roofs of all devices, including all earlier ones."""

    def put(self, device_uuid: str, roof: Roof, *, only_new: bool = False) -> bool:
        """Store a roof; with `only_new` only where the same roof is not stored yet. Returns whether it was stored."""
        body = msgspec.json.encode(roof)
        same = select(roofs.c.id).where(roofs.c.device_uuid == device_uuid, roofs.c.body == body).limit(1)
        with self._database.write() as connection:
            if only_new and connection.scalar(same) is not None:
                return False
            connection.execute(
                insert(roofs).values(
                    device_uuid=device_uuid,
                    name=roof.name,
                    precision=roof.precision or "",
                    measured_at=roof.measured_at,
                    body=body,
                )
            )
            return True

    def newest(self, device_uuid: str) -> tuple[Roof, ...]:
        """The newest roof of each kind (Roof.key), in the order in which they were first measured."""
        return newest_of(self.of_device(device_uuid))

    def of_device(self, device_uuid: str) -> tuple[Roof, ...]:
        """All roofs that were measured on the device, in the order of measuring."""
        return tuple(roof for _, roof in self.every(device_uuid))

    def every(self, device_uuid: str | None = None) -> tuple[tuple[str, Roof], ...]:
        """Every roof of every device, or of one, with its device's uuid, in the order of measuring."""
        stored = select(roofs.c.device_uuid, roofs.c.body).where(*equal({roofs.c.device_uuid: device_uuid}))
        with self._database.read() as connection:
            # Not in the order of writing, because restoring a backup adds older roofs.
            rows = connection.execute(stored.order_by(roofs.c.measured_at, roofs.c.id))
            read = [
                (row.device_uuid, self._readable(row.body, Roof, f"a roof of device {row.device_uuid}")) for row in rows
            ]
        return tuple((uuid, roof) for uuid, roof in read if roof is not None)


class Selftests(StorePart):
    """The selftests of all devices."""

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
        newest = (
            select(selftests.c.body)
            .where(selftests.c.device_uuid == device_uuid)
            .order_by(selftests.c.created_at.desc(), selftests.c.id.desc())
            .limit(limit)
        )
        return tuple(self._decoded(newest, Selftest))

    def get(self, selftest_id: str) -> Selftest | None:
        """The selftest with that id, None where there is none."""
        return next(self._decoded(select(selftests.c.body).where(selftests.c.id == selftest_id), Selftest), None)

    def every(self) -> Iterator[Selftest]:
        """Every selftest of every device, one at a time, the oldest first."""
        return self._decoded(select(selftests.c.body).order_by(selftests.c.created_at, selftests.c.id), Selftest)


class Inspections(StorePart):
    """The newest inspection of each case on each device, and at most MOST_INSPECTIONS altogether."""

    def put(self, inspection: Inspection) -> None:
        """Store an inspection in place of an earlier one of the same case and device; remove the oldest beyond the limit."""
        uuid = inspection.environment.device.uuid
        same = (inspections.c.device_uuid == uuid, inspections.c.case_key == inspection.case_key)
        newest = select(inspections.c.created_at).order_by(inspections.c.created_at.desc())
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
            last = connection.scalar(newest.offset(MOST_INSPECTIONS - 1).limit(1))
            if last is not None:
                connection.execute(delete(inspections).where(inspections.c.created_at < last))

    def get(self, device_uuid: str, case_key: str) -> Inspection | None:
        """The newest inspection of the case on that device, None where none is stored."""
        same = equal({inspections.c.device_uuid: device_uuid, inspections.c.case_key: case_key})
        return next(self._decoded(select(inspections.c.body).where(*same), Inspection), None)

    def every(self) -> Iterator[Inspection]:
        """Every inspection, one at a time, the oldest first, so that storing them in this order keeps the newest."""
        return self._decoded(select(inspections.c.body).order_by(inspections.c.created_at), Inspection)


class Tunings(StorePart):
    """The best configuration of each variant for each problem on each device; a newer tuning replaces an older one."""

    def put(self, tuning: Tuning, *, only_newer: bool = False) -> bool:
        """Store a tuning in place of an earlier one of the same variant, problem and device; with `only_newer` not where the
        stored one is as new. Returns whether it was stored."""
        with self._database.write() as connection:
            stored_at = connection.scalar(select(tunings.c.created_at).where(_same(tuning)))
            if only_newer and stored_at is not None and stored_at >= tuning.created_at:
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
        order = (tunings.c.op, tunings.c.variant, tunings.c.problem_key, tunings.c.device_uuid)
        chosen = select(tunings.c.body).where(*equal({tunings.c.device_uuid: device_uuid, tunings.c.op: op}))
        return tuple(self._decoded(chosen.order_by(*order), Tuning))

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
