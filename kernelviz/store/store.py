"""Runs, results and roofs, kept and found again. Every method may be called from any thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import platformdirs
from sqlalchemy import URL, ColumnElement, Connection, Row, case, delete, func, insert, or_, select, update
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from kernelviz.core.chunks import parts
from kernelviz.core.errors import UnknownRun
from kernelviz.core.finite import finite_result
from kernelviz.core.inspection import Inspection
from kernelviz.core.kernel_times import RunTimes
from kernelviz.core.problem import Method, Plan, Struct
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import LIVING, SCHEMA, Environment, Roof, Run, Status
from kernelviz.core.selftest import Selftest
from kernelviz.core.tuning import Tuning
from kernelviz.store import backup_records
from kernelviz.store.case_times import TimeRow, environments, put_times, times_of, times_rows
from kernelviz.store.database import TOGETHER, Database, StoreError
from kernelviz.store.inspections import inspection, put_inspection
from kernelviz.store.kernel_times import run_times
from kernelviz.store.process_presence import Presence
from kernelviz.store.result_encoding import packed, unpacked
from kernelviz.store.tables import results, roofs, runs, selftests, times
from kernelviz.store.tunings import drop_tunings, put_tuning, tunings_of


class _Header(Struct, frozen=True, kw_only=True):
    schema: str = SCHEMA
    environment: Environment
    method: Method
    plan: Plan


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run without its results. `status` is ``interrupted`` when the process that measured it is gone.

    `done`: cases with a result, `failed` ones among them; `cancelled` ones were given up and are in neither. `spent_s`: how
    long it held its device, all its parts together (0: measured by an earlier version, or elsewhere).
    """

    id: str
    title: str
    op: str
    device: str
    created_at: str
    status: Status
    owner: str
    note: str
    cases: int
    done: int
    failed: int
    cancelled: int
    presence: Presence
    deleted_at: str | None
    spent_s: float = 0.0


def home() -> Path:
    """KERNELVIZ_HOME, else the user's data folder."""
    given = os.environ.get("KERNELVIZ_HOME")
    return Path(given).expanduser() if given else Path(platformdirs.user_data_dir("kernelviz"))


KEPT_RUNS = 4
"""Ended runs that were read last stay in memory while nothing was written to them; one of 100 cases has 20 MB there."""


class Store:
    """The database of one installation."""

    def __init__(self, url: str | URL) -> None:
        """Raises StoreError."""
        self._database = Database(url)
        self.url = self._database.url.render_as_string(hide_password=False)
        self._own = Presence.own()
        self._kept: dict[str, tuple[tuple[object, ...], Run]] = {}
        self._kept_lock = threading.Lock()
        self._dropped_at: dict[str, int] = {}

    @classmethod
    def open(cls, folder: Path | None = None) -> Store:
        """The database in `folder`, by default KERNELVIZ_DATABASE_URL or the one in `home()`. Raises StoreError."""
        url = os.environ.get("KERNELVIZ_DATABASE_URL") if folder is None else None
        if url:
            return cls(url)
        where = folder or home()
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {where} cannot be made ({error.strerror}); set KERNELVIZ_HOME to one that can be written"
            ) from error
        # Not as text: a folder may have ? or % in its name.
        return cls(URL.create("sqlite", database=str(where / "kernelviz.db")))

    def close(self) -> None:
        self._database.close()

    # Writing

    def create(self, run: Run, *, owner: str = "") -> None:
        """Store a run, with the results that it has, as one of this process."""
        self.create_all((run,), owner=owner)

    def create_all(self, created: Sequence[Run], *, owner: str = "", deleted_at: str | None = None) -> None:
        """Store runs with the results that they have, all of them or none, as ones of this process."""
        # Before the write lock is taken: packing the bodies of 100,000 cases takes many seconds, for which others would wait.
        about = {"owner": owner, "deleted_at": deleted_at, **self._presence()}
        made = [(_run_values(run) | about, *_case_rows(run)) for run in created]
        with self._database.write() as connection:
            for values, result_rows, time_rows in made:
                connection.execute(insert(runs).values(**values))
                if result_rows:
                    connection.execute(insert(results), result_rows)
                if time_rows:
                    connection.execute(insert(times), time_rows)

    def put_results(self, run_id: str, placed: Sequence[tuple[int, Result]]) -> None:
        """Store results at their positions in the plan; a case that has one already gets the new one."""
        with self._database.write() as connection:
            row = _header_row(connection, run_id)
            self._put(connection, run_id, placed, row.device_uuid, msgspec.json.decode(row.header, type=_Header))

    def drop_results(self, run_id: str, case_keys: Iterable[str]) -> None:
        keys = list(case_keys)
        with self._database.write() as connection:
            # The newest may be among them, and its revision must not be given to another result: followers have seen it.
            self._dropped_at[run_id] = self._revision(connection, run_id)
            for some in parts(keys, TOGETHER):
                for table in (results, times):
                    connection.execute(delete(table).where(table.c.run_id == run_id, table.c.case_key.in_(some)))

    def set_status(self, run_id: str, status: Status) -> None:
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(status=status))

    def add_spent(self, run_id: str, seconds: float) -> None:
        """The run held its device for so many seconds more."""
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(spent_s=runs.c.spent_s + seconds))

    def set_environment(self, run_id: str, environment: Environment) -> None:
        """Complete the header with what the worker knows of the machine."""
        with self._database.write() as connection:
            body = connection.scalar(select(runs.c.header).where(runs.c.id == run_id))
            if body is None:
                raise UnknownRun(run_id)
            header = msgspec.structs.replace(msgspec.json.decode(body, type=_Header), environment=environment)
            device = environment.device
            values = {"header": msgspec.json.encode(header), "device": device.name, "device_uuid": device.uuid}
            connection.execute(update(runs).where(runs.c.id == run_id).values(**values))
            connection.execute(update(times).where(times.c.run_id == run_id).values(device_uuid=device.uuid))

    def set_words(self, run_id: str, *, title: str | None = None, note: str | None = None) -> None:
        """Change title or note, which are no part of the document's digest. Raises UnknownRun."""
        values = {key: value for key, value in (("title", title), ("note", note)) if value is not None}
        with self._database.write() as connection:
            if values and not connection.execute(update(runs).where(runs.c.id == run_id).values(**values)).rowcount:
                raise UnknownRun(run_id)

    def set_deleted(self, run_id: str, at: str | None) -> None:
        """Hide an ended run since `at` (ISO time), or show it again. Raises UnknownRun; StoreError while it is measured."""
        with self._database.write() as connection:
            row = _header_row(connection, run_id)
            if at is not None and _status(row) in LIVING:
                raise StoreError(f"run {run_id} is being measured; cancel it before it is deleted")
            connection.execute(update(runs).where(runs.c.id == run_id).values(deleted_at=at))

    def purge(self, before: str) -> list[str]:
        """Remove for good what was deleted before that ISO time; the ids."""
        with self._database.write() as connection:
            gone = list(connection.scalars(select(runs.c.id).where(runs.c.deleted_at < before)))
            for run_id in gone:
                _remove(connection, run_id)
        return gone

    def remove(self, run_id: str) -> None:
        """Remove an ended run for good. No-op when it is not there. Raises StoreError while it is measured."""
        with self._database.write() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
            if row is not None and _status(row) in LIVING:
                raise StoreError(f"run {run_id} is being measured; cancel it before it is removed")
            _remove(connection, run_id)

    def claim(self, run_id: str) -> bool:
        """Make an ended run one of this process again, queued. False when it is being measured (by whomever)."""
        with self._database.write() as connection:
            row = _header_row(connection, run_id)
            if _status(row) in LIVING:
                return False
            connection.execute(update(runs).where(runs.c.id == run_id).values(status="queued", **self._presence()))
            return True

    def interrupt_dead(self) -> list[str]:
        """Mark the runs whose process is gone as interrupted; their ids."""
        with self._database.read() as connection:
            rows = connection.execute(select(runs).where(runs.c.status.in_(LIVING))).all()
        dead = [row for row in rows if _status(row) == "interrupted"]
        with self._database.write() as connection:
            for row in dead:
                # Only if nobody has claimed it meanwhile.
                unchanged = (runs.c.id == row.id, runs.c.pid == row.pid, runs.c.pid_started_s == row.pid_started_s)
                connection.execute(update(runs).where(*unchanged).values(status="interrupted"))
        return [row.id for row in dead]

    def put_roof(self, device_uuid: str, roof: Roof) -> None:
        with self._database.write() as connection:
            connection.execute(
                insert(roofs).values(
                    device_uuid=device_uuid,
                    name=roof.name,
                    precision=roof.precision or "",
                    measured_at=roof.measured_at,
                    body=msgspec.json.encode(roof),
                )
            )

    def put_selftest(self, made: Selftest) -> None:
        """Keep a selftest; one of the same id is replaced."""
        uuid = made.environment.device.uuid
        values = {"device_uuid": uuid, "created_at": made.created_at, "body": msgspec.json.encode(made)}
        with self._database.write() as connection:
            connection.execute(delete(selftests).where(selftests.c.id == made.id))
            connection.execute(insert(selftests).values(id=made.id, **values))

    def add_roof(self, device_uuid: str, roof: Roof) -> bool:
        """Keep a roof from elsewhere unless the same one is kept; whether it was new."""
        return backup_records.add_roof(self._database, device_uuid, roof)

    def add_selftest(self, made: Selftest) -> bool:
        """Keep a selftest from elsewhere unless one of its id is kept; whether it was new."""
        return backup_records.add_selftest(self._database, made)

    def put_inspection(self, made: Inspection) -> None:
        """Keep the inspection of a case instead of an earlier one on the same device."""
        put_inspection(self._database, made)

    def put_tuning(self, made: Tuning) -> None:
        """Keep what a tuning found instead of an earlier one of the same variant, problem and device."""
        put_tuning(self._database, made)

    def add_tuning(self, made: Tuning) -> bool:
        """Keep one from elsewhere unless what is kept is as new; whether it was."""
        return put_tuning(self._database, made, only_newer=True)

    def drop_tunings(self, gone: Sequence[Tuning]) -> None:
        """Forget what tunings found."""
        drop_tunings(self._database, gone)

    # Reading

    def tunings(self, device_uuid: str | None = None, op: str | None = None) -> tuple[Tuning, ...]:
        """What tunings found, by op, variant and problem: everything, or of one device and op."""
        return tunings_of(self._database, device_uuid, op)

    def run(self, run_id: str) -> Run:
        """The run with the results so far, in the order of the plan, deleted or not. Raises UnknownRun."""
        written = select(func.max(results.c.revision), func.count()).where(results.c.run_id == run_id)
        with self._database.read() as connection:
            row = _header_row(connection, run_id)
            state = (tuple(row), *connection.execute(written).one())
            with self._kept_lock:
                if run_id in self._kept and self._kept[run_id][0] == state:
                    return self._kept[run_id][1]
            ordered = select(results.c.body).where(results.c.run_id == run_id).order_by(results.c.position)
            bodies = connection.scalars(ordered).all()
        header = msgspec.json.decode(row.header, type=_Header)
        found = Run(
            id=row.id,
            title=row.title,
            note=row.note,
            created_at=row.created_at,
            status=_status(row),
            environment=header.environment,
            method=header.method,
            plan=header.plan,
            results=tuple(map(unpacked, bodies)),
        )
        if found.status not in LIVING:
            self._keep(run_id, state, found)
        return found

    def _keep(self, run_id: str, state: tuple[object, ...], found: Run) -> None:
        """A page reads its run again at each redraw: unpacking a hundred cases takes 50 ms."""
        with self._kept_lock:
            self._kept.pop(run_id, None)
            self._kept[run_id] = (state, found)
            while len(self._kept) > KEPT_RUNS:
                del self._kept[next(iter(self._kept))]

    def result(self, run_id: str, case_key: str) -> Result | None:
        """The result of one case so far; None when it has none."""
        chosen = select(results.c.body).where(results.c.run_id == run_id, results.c.case_key == case_key)
        with self._database.read() as connection:
            body = connection.scalar(chosen)
        return None if body is None else unpacked(body)

    def results_of(self, run_id: str, case_keys: Sequence[str]) -> dict[str, Result]:
        """The results of those of the cases that have one so far, by key."""
        found: dict[str, Result] = {}
        with self._database.read() as connection:
            for some in parts(case_keys, TOGETHER):
                chosen = select(results.c.case_key, results.c.body).where(
                    results.c.run_id == run_id, results.c.case_key.in_(some)
                )
                found.update({row.case_key: unpacked(row.body) for row in connection.execute(chosen)})
        return found

    def row(self, run_id: str) -> RunRow:
        """The run's line and counts, deleted or not. Raises UnknownRun."""
        found = self._rows(select(runs).where(runs.c.id == run_id))
        if not found:
            raise UnknownRun(run_id)
        return found[0]

    def rows(self, limit: int, offset: int = 0, *, search: str = "", deleted: bool = False) -> list[RunRow]:
        """The newest runs first. `search`: words that all occur in id, title, note, op, device or status."""
        newest = select(runs).where(*_matching(search, deleted))
        newest = newest.order_by(runs.c.created_at.desc(), runs.c.id.desc())
        return self._rows(newest.limit(limit).offset(offset))

    def count(self, *, search: str = "", deleted: bool = False) -> int:
        """How many runs `rows` would give without a limit."""
        with self._database.read() as connection:
            return connection.scalar(select(func.count()).select_from(runs).where(*_matching(search, deleted))) or 0

    def results_after(self, run_id: str, revision: int) -> list[tuple[int, Result]]:
        """What was written after that revision, with its revision, in the order of writing."""
        newer = select(results.c.revision, results.c.body).where(
            results.c.run_id == run_id, results.c.revision > revision
        )
        with self._database.read() as connection:
            found = connection.execute(newer.order_by(results.c.revision)).all()
        return [(row.revision, unpacked(row.body)) for row in found]

    def newest_revision(self, run_id: str) -> int:
        """Of what was written last in the run; 0 when nothing was."""
        with self._database.read() as connection:
            return self._revision(connection, run_id)

    def is_own(self, row: RunRow) -> bool:
        """Whether this process measures the run, or did so last."""
        # Not by its start, which reads the same to a tick only: two live processes never share the other three.
        known, own = row.presence, self._own
        return (known.host, known.boot_id, known.pid) == (own.host, own.boot_id, own.pid) and known.alive()

    @property
    def folder(self) -> Path | None:
        """Where the database's file is; None when it is none."""
        url = self._database.url
        return Path(url.database).parent if url.drivername.startswith("sqlite") and url.database else None

    def last_tracer(self, device_uuid: str) -> str | None:
        """The tracer's line of the newest run on that device which has one."""
        newest = select(runs.c.header).where(runs.c.device_uuid == device_uuid).order_by(runs.c.created_at.desc())
        with self._database.read() as connection:
            for body in connection.scalars(newest.limit(5)):
                tracer = msgspec.json.decode(body, type=_Header).environment.tracer
                if tracer is not None:
                    return tracer
        return None

    def roofs(self, device_uuid: str) -> tuple[Roof, ...]:
        """The newest roof of each kind (Roof.key), in the order in which they were first measured."""
        decoded = self.every_roof(device_uuid)
        # Roofs of a version that knew neither level nor unit are void where the same was measured with one since.
        told = {(roof.name, roof.precision) for roof in decoded if roof.level or roof.unit}
        newest = {
            roof.key: roof for roof in decoded if roof.level or roof.unit or (roof.name, roof.precision) not in told
        }
        return tuple(newest.values())

    def every_roof(self, device_uuid: str) -> tuple[Roof, ...]:
        """Every roof that was ever measured on the device, in the order of measuring."""
        # Not in the order of writing: a backup that is restored brings older ones.
        kept = select(roofs.c.body).where(roofs.c.device_uuid == device_uuid).order_by(roofs.c.measured_at, roofs.c.id)
        with self._database.read() as connection:
            return tuple(msgspec.json.decode(body, type=Roof) for body in connection.scalars(kept))

    def run_times(self, device_uuid: str, limit: int) -> tuple[RunTimes, ...]:
        """How long the kernels of the newest runs on a device took."""
        return run_times(self._database, device_uuid, limit)

    def times(self, device_uuid: str, *, op: str | None = None, case_key: str | None = None) -> list[TimeRow]:
        """The device times of every case on that device, case by case, in the order of time; see store.times."""
        return times_of(self._database, device_uuid, op=op, case_key=case_key)

    def environments(self, run_ids: Sequence[str]) -> dict[str, Environment]:
        """The machines of these runs."""
        return environments(self._database, run_ids)

    def selftests(self, device_uuid: str, limit: int) -> tuple[Selftest, ...]:
        """The newest selftests of that device first."""
        newest = select(selftests.c.body).where(selftests.c.device_uuid == device_uuid)
        newest = newest.order_by(selftests.c.created_at.desc(), selftests.c.id.desc()).limit(limit)
        with self._database.read() as connection:
            return tuple(msgspec.json.decode(body, type=Selftest) for body in connection.scalars(newest))

    def selftest(self, selftest_id: str) -> Selftest | None:
        with self._database.read() as connection:
            body = connection.scalar(select(selftests.c.body).where(selftests.c.id == selftest_id))
        return None if body is None else msgspec.json.decode(body, type=Selftest)

    def all_roofs(self) -> tuple[tuple[str, Roof], ...]:
        """Every roof of every device, each with its device's uuid."""
        return tuple(backup_records.every_roof(self._database))

    def all_selftests(self) -> Iterator[Selftest]:
        """Every selftest of every device, one at a time."""
        return backup_records.every_selftest(self._database)

    def all_inspections(self) -> Iterator[Inspection]:
        """Every inspection that is kept, one at a time, the oldest first."""
        return backup_records.every_inspection(self._database)

    def inspection(self, device_uuid: str, case_key: str) -> Inspection | None:
        """The newest inspection of the case on that device, while it is kept."""
        return inspection(self._database, device_uuid, case_key)

    # Inside

    def _presence(self) -> dict[str, Any]:
        own = self._own
        return {"host": own.host, "boot_id": own.boot_id, "pid": own.pid, "pid_started_s": own.started_s}

    def _revision(self, connection: Connection, run_id: str) -> int:
        last = connection.scalar(select(func.max(results.c.revision)).where(results.c.run_id == run_id)) or 0
        return max(last, self._dropped_at.get(run_id, 0))

    def _put(
        self, connection: Any, run_id: str, placed: Sequence[tuple[int, Result]], device_uuid: str, header: _Header
    ) -> None:
        """Results, and their times beside them."""
        kept = [(position, finite_result(given)) for position, given in placed]
        last = self._revision(connection, run_id)
        make = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
        rows = _result_rows(run_id, kept, device_uuid, last + 1)
        if rows:
            added = make(results)
            replaced = {name: added.excluded[name] for name in rows[0] if name not in ("run_id", "case_key")}
            upsert = added.on_conflict_do_update(index_elements=["run_id", "case_key"], set_=replaced)
            connection.execute(upsert, rows)
        put_times(connection, run_id, device_uuid, header.method, header.plan, [result for _, result in kept])

    def _rows(self, chosen: Any) -> list[RunRow]:
        counts = select(
            results.c.run_id,
            func.sum(case((results.c.stage != "cancelled", 1), else_=0)).label("done"),
            func.sum(case((results.c.stage.not_in(("", "cancelled")), 1), else_=0)).label("failed"),
            func.sum(case((results.c.stage == "cancelled", 1), else_=0)).label("cancelled"),
        )
        with self._database.read() as connection:
            rows = connection.execute(chosen).all()
            by_run: dict[str, tuple[int, int, int]] = {}
            for some in parts(rows, TOGETHER):
                ids = [row.id for row in some]
                counted = counts.where(results.c.run_id.in_(ids)).group_by(results.c.run_id)
                found = connection.execute(counted)
                by_run |= {row.run_id: (row.done, row.failed, row.cancelled) for row in found}
        return [_run_row(row, *by_run.get(row.id, (0, 0, 0))) for row in rows]


def _run_values(run: Run) -> dict[str, Any]:
    header = _Header(environment=run.environment, method=run.method, plan=run.plan)
    return {
        "id": run.id,
        "header": msgspec.json.encode(header),
        "title": run.title,
        "note": run.note,
        "created_at": run.created_at,
        "status": run.status,
        "op": run.plan.op,
        "device": run.environment.device.name,
        "device_uuid": run.environment.device.uuid,
        "cases": len(run.plan.cases()),
    }


def _case_rows(run: Run) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results of a new run and their times; of two results of a case the later one."""
    last = {result.case.key: (i, finite_result(result)) for i, result in enumerate(run.results)}
    kept, uuid = list(last.values()), run.environment.device.uuid
    return (
        _result_rows(run.id, kept, uuid, 1),
        times_rows(run.id, uuid, run.method, run.plan, [result for _, result in kept]),
    )


def _result_rows(
    run_id: str, placed: Sequence[tuple[int, Result]], device_uuid: str, first_revision: int
) -> list[dict[str, Any]]:
    return [
        {
            "run_id": run_id,
            "case_key": result.case.key,
            "position": position,
            "revision": revision,
            "op": result.problem.op,
            "variant": result.variant,
            "dtype": result.problem.dtype,
            "device_uuid": device_uuid,
            "stage": result.outcome.stage if isinstance(result.outcome, Failure) else "",
            "body": packed(result),
        }
        for revision, (position, result) in enumerate(placed, first_revision)
    ]


def _remove(connection: Connection, run_id: str) -> None:
    for table in (results, times):
        connection.execute(delete(table).where(table.c.run_id == run_id))
    connection.execute(delete(runs).where(runs.c.id == run_id))


def _header_row(connection: Connection, run_id: str) -> Row[Any]:
    """Raises UnknownRun."""
    row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
    if row is None:
        raise UnknownRun(run_id)
    return row


def _matching(search: str, deleted: bool) -> list[ColumnElement[bool]]:
    searched = (runs.c.id, runs.c.title, runs.c.note, runs.c.op, runs.c.device, runs.c.status)
    state = runs.c.deleted_at.is_not(None) if deleted else runs.c.deleted_at.is_(None)
    return [state, *(or_(*(c.icontains(word, autoescape=True) for c in searched)) for word in search.split())]


def _presence_of(row: Row[Any]) -> Presence:
    return Presence(host=row.host, boot_id=row.boot_id, pid=row.pid, started_s=row.pid_started_s)


def _status(row: Row[Any]) -> Status:
    stored: Status = row.status
    return "interrupted" if stored in LIVING and not _presence_of(row).alive() else stored


def _run_row(row: Row[Any], done: int, failed: int, cancelled: int) -> RunRow:
    return RunRow(
        id=row.id,
        title=row.title,
        op=row.op,
        device=row.device,
        created_at=row.created_at,
        status=_status(row),
        owner=row.owner,
        note=row.note,
        cases=row.cases,
        done=done,
        failed=failed,
        cancelled=cancelled,
        presence=_presence_of(row),
        deleted_at=row.deleted_at,
        spent_s=row.spent_s,
    )
