"""Runs of workloads: the header, status, title and note of each, one row per result, and the process that measures it."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import ColumnElement, Connection, Row, case, delete, func, insert, or_, select, update

from kernelviz.core import LIVING, Device, Environment, Failure, Status, Struct
from kernelviz.core.reasons import StoredResultDamaged
from kernelviz.core.workload import WORKLOAD_SCHEMA, Workload, WorkloadPlan, WorkloadResult, WorkloadRun
from kernelviz.core.workload_errors import UnknownWorkloadRun
from kernelviz.store.database import Database, StoreError, StorePart, decoded, rows_with
from kernelviz.store.process_presence import Presence
from kernelviz.store.run_rows import presence_of, status_of
from kernelviz.store.tables import workload_results, workload_runs

_LEVEL = 1


class _Header(Struct, frozen=True, kw_only=True):
    """The part of a run that is stored beside its results and the indexed columns."""

    schema: str = WORKLOAD_SCHEMA
    environment: Environment
    devices: tuple[Device, ...]
    declared: Workload
    plan: WorkloadPlan


@dataclass(frozen=True, slots=True)
class WorkloadRow:
    """A run without its results. `done`: cases with a result that was not cancelled; `failed`: of these, tried without usable
    values. `status` is ``interrupted`` when the process that measured it is gone."""

    id: str
    title: str
    workload: str
    device: str
    created_at: str
    status: Status
    owner: str
    note: str
    cases: int
    done: int
    failed: int
    presence: Presence
    deleted_at: str | None


class WorkloadRuns(StorePart):
    """The runs of workloads of one database."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._own = Presence.own()

    def create(self, *created: WorkloadRun, owner: str = "", deleted_at: str | None = None) -> None:
        """Store runs with their results, all of them or none, as runs of this process."""
        about = {"owner": owner, "deleted_at": deleted_at, **self._presence()}
        with self._database.write() as connection:
            for run in created:
                connection.execute(insert(workload_runs).values(**_values(run) | about))
                for result in run.results:
                    _put(connection, run.id, _position(run.plan, result), result)

    def put(self, run_id: str, position: int, result: WorkloadResult) -> None:
        """Store a result, which replaces that of the same case. Errors: UnknownRun."""
        with self._database.write() as connection:
            _row(connection, run_id)
            _put(connection, run_id, position, result)

    def drop(self, run_id: str, case_keys: Sequence[str]) -> None:
        """Remove the results of these cases."""
        with self._database.write() as connection:
            for key in case_keys:
                same = (workload_results.c.run_id == run_id, workload_results.c.case_key == key)
                connection.execute(delete(workload_results).where(*same))

    def set_status(self, run_id: str, status: Status) -> None:
        """Change the status of a run."""
        with self._database.write() as connection:
            connection.execute(update(workload_runs).where(workload_runs.c.id == run_id).values(status=status))

    def set_title_or_note(self, run_id: str, *, title: str | None = None, note: str | None = None) -> None:
        """Change title or note, which the document's digest does not include. Errors: UnknownRun."""
        values = {key: value for key, value in (("title", title), ("note", note)) if value is not None}
        with self._database.write() as connection:
            changed = update(workload_runs).where(workload_runs.c.id == run_id)
            if values and not connection.execute(changed.values(**values)).rowcount:
                raise UnknownWorkloadRun(run_id)

    def set_deleted(self, run_id: str, at: str | None) -> None:
        """Hide an ended run since `at` (ISO time), or show it again. Errors: UnknownRun; StoreError while it is measured."""
        with self._database.write() as connection:
            row = _row(connection, run_id)
            if at is not None and status_of(row) in LIVING:
                raise StoreError(f"run {run_id} is being measured; cancel it before it is deleted")
            connection.execute(update(workload_runs).where(workload_runs.c.id == run_id).values(deleted_at=at))

    def purge(self, before: str) -> list[str]:
        """Remove permanently the runs that were deleted before that ISO time; return their ids."""
        with self._database.write() as connection:
            gone = list(connection.scalars(select(workload_runs.c.id).where(workload_runs.c.deleted_at < before)))
            for run_id in gone:
                connection.execute(delete(workload_results).where(workload_results.c.run_id == run_id))
                connection.execute(delete(workload_runs).where(workload_runs.c.id == run_id))
        return gone

    def claim(self, run_id: str) -> bool:
        """Make an ended run a queued run of this process. False while any process measures it."""
        with self._database.write() as connection:
            if status_of(_row(connection, run_id)) in LIVING:
                return False
            claimed = update(workload_runs).where(workload_runs.c.id == run_id)
            connection.execute(claimed.values(status="queued", **self._presence()))
            return True

    def interrupt_dead(self) -> list[str]:
        """Mark the runs whose process has ended as interrupted; return their ids."""
        with self._database.read() as connection:
            rows = connection.execute(select(workload_runs).where(workload_runs.c.status.in_(LIVING))).all()
        dead = [row for row in rows if status_of(row) == "interrupted"]
        if not dead:
            return []
        with self._database.write() as connection:
            for row in dead:
                # Only if no process has claimed it meanwhile.
                same = (workload_runs.c.id == row.id, workload_runs.c.pid == row.pid)
                connection.execute(update(workload_runs).where(*same).values(status="interrupted"))
        return [row.id for row in dead]

    def load(self, run_id: str) -> WorkloadRun:
        """The run, deleted or not, with its results so far in the order of the plan. A result that cannot be read is a failure
        that says so. Errors: UnknownRun; DamagedRow."""
        chosen = select(workload_results).where(workload_results.c.run_id == run_id)
        with self._database.read() as connection:
            row = _row(connection, run_id)
            header = decoded(row.header, _Header, f"run {run_id}")
            rows = connection.execute(chosen.order_by(workload_results.c.position)).all()
        return WorkloadRun(
            id=row.id,
            title=row.title,
            note=row.note,
            created_at=row.created_at,
            status=status_of(row),
            environment=header.environment,
            devices=header.devices,
            declared=header.declared,
            plan=header.plan,
            results=tuple(self._result(r, header.plan) for r in rows),
        )

    def _result(self, row: Row[Any], plan: WorkloadPlan) -> WorkloadResult:
        try:
            return msgspec.json.decode(zlib.decompress(row.body), type=WorkloadResult)
        except (zlib.error, msgspec.MsgspecError, ValueError, RecursionError):
            self._database.damaged.add(f"a result of run {row.run_id}")
            case = next((c for c in plan.cases if c.key == row.case_key), plan.cases[0])
            return WorkloadResult(case=case, failure=Failure(stage="unavailable", reasons=(StoredResultDamaged(),)))

    def row(self, run_id: str) -> WorkloadRow:
        """The summary of a run, deleted or not. Errors: UnknownRun."""
        rows = self._rows(select(workload_runs).where(workload_runs.c.id == run_id))
        if not rows:
            raise UnknownWorkloadRun(run_id)
        return rows[0]

    def rows(self, limit: int, offset: int = 0, *, search: str = "", deleted: bool = False) -> list[WorkloadRow]:
        """Summaries, the newest first. `search`: terms that all occur in id, title, note, workload, device or status."""
        order = (workload_runs.c.created_at.desc(), workload_runs.c.id.desc())
        newest = select(workload_runs).where(*_matching(search, deleted)).order_by(*order)
        return self._rows(newest.limit(limit).offset(offset))

    def count(self, *, search: str = "", deleted: bool = False) -> int:
        """The number of runs that `rows` would return without a limit."""
        counted = select(func.count()).select_from(workload_runs).where(*_matching(search, deleted))
        with self._database.read() as connection:
            return connection.scalar(counted) or 0

    def _presence(self) -> dict[str, Any]:
        own = self._own
        return {"host": own.host, "boot_id": own.boot_id, "pid": own.pid, "pid_started_s": own.started_s}

    def _rows(self, chosen: Any) -> list[WorkloadRow]:
        stage = workload_results.c.stage
        counts = select(
            workload_results.c.run_id,
            func.sum(case((stage != "cancelled", 1), else_=0)).label("done"),
            func.sum(case((stage.not_in(("", "cancelled", "unavailable")), 1), else_=0)).label("failed"),
        ).group_by(workload_results.c.run_id)
        with self._database.read() as connection:
            rows = connection.execute(chosen).all()
            counted = rows_with(connection, counts, workload_results.c.run_id, [row.id for row in rows])
            by_run = {c.run_id: (c.done, c.failed) for c in counted}
        return [_summary(row, *by_run.get(row.id, (0, 0))) for row in rows]


def _summary(row: Row[Any], done: int, failed: int) -> WorkloadRow:
    return WorkloadRow(
        id=row.id,
        title=row.title,
        workload=row.workload,
        device=row.device,
        created_at=row.created_at,
        status=status_of(row),
        owner=row.owner,
        note=row.note,
        cases=row.cases,
        done=done,
        failed=failed,
        presence=presence_of(row),
        deleted_at=row.deleted_at,
    )


def _row(connection: Connection, run_id: str) -> Row[Any]:
    row = connection.execute(select(workload_runs).where(workload_runs.c.id == run_id)).one_or_none()
    if row is None:
        raise UnknownWorkloadRun(run_id)
    return row


def _values(run: WorkloadRun) -> dict[str, Any]:
    header = _Header(environment=run.environment, devices=run.devices, declared=run.declared, plan=run.plan)
    return {
        "id": run.id,
        "header": msgspec.json.encode(header),
        "title": run.title,
        "note": run.note,
        "created_at": run.created_at,
        "status": run.status,
        "workload": run.plan.workload,
        "device": " + ".join(device.name for device in run.devices),
        "cases": len(run.plan.cases),
    }


def _position(plan: WorkloadPlan, result: WorkloadResult) -> int:
    return plan.cases.index(result.case)


def _put(connection: Connection, run_id: str, position: int, result: WorkloadResult) -> None:
    key = result.case.key
    same = (workload_results.c.run_id == run_id, workload_results.c.case_key == key)
    connection.execute(delete(workload_results).where(*same))
    connection.execute(
        insert(workload_results).values(
            run_id=run_id,
            case_key=key,
            position=position,
            stage="" if result.failure is None else result.failure.stage,
            body=zlib.compress(msgspec.json.encode(result), _LEVEL),
        )
    )


def _matching(search: str, deleted: bool) -> list[ColumnElement[bool]]:
    runs = workload_runs
    searched = (runs.c.id, runs.c.title, runs.c.note, runs.c.workload, runs.c.device, runs.c.status)
    state = runs.c.deleted_at.is_not(None) if deleted else runs.c.deleted_at.is_(None)
    return [state, *(or_(*(c.icontains(term, autoescape=True) for c in searched)) for term in search.split())]
