"""Runs of workloads: the header, status, title and note of each, one row per result, and the process that measures it."""

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from sqlalchemy import Connection, Row, case, delete, func, insert, select

from kernelviz.core import Device, Environment, Failure, Status, Struct
from kernelviz.core.mechanics_only import is_mechanics_only
from kernelviz.core.reasons import StoredResultDamaged
from kernelviz.core.workload import (
    WORKLOAD_SCHEMA,
    CpuMeaning,
    Workload,
    WorkloadPlan,
    WorkloadResult,
    WorkloadRun,
)
from kernelviz.core.workload_errors import UnknownWorkloadRun
from kernelviz.core.workload_explanations import as_recorded
from kernelviz.store.database import decoded, rows_with
from kernelviz.store.process_presence import Presence
from kernelviz.store.run_records import RunRecords
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
    values. `status` is ``interrupted`` when the process that measured it is gone. `mechanics_only`: its times say nothing about
    GPUs."""

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
    mechanics_only: bool


class WorkloadRuns(RunRecords):
    """The runs of workloads of one database."""

    _table, _subject, _unknown = workload_runs, "workload", UnknownWorkloadRun

    def create(self, *created: WorkloadRun, owner: str = "", deleted_at: str | None = None) -> None:
        """Store runs with their results, all of them or none, as runs of this process."""
        about = {"owner": owner, "deleted_at": deleted_at, **self._presence()}
        with self._database.write() as connection:
            for run in map(as_recorded, created):
                connection.execute(insert(workload_runs).values(**_values(run) | about))
                for result in run.results:
                    _put(connection, run.id, _position(run.plan, result), result)

    def put(self, run_id: str, position: int, result: WorkloadResult) -> None:
        """Store a result, which replaces that of the same case. Errors: UnknownRun."""
        with self._database.write() as connection:
            self._row(connection, run_id)
            _put(connection, run_id, position, result)

    def drop(self, run_id: str, case_keys: Sequence[str]) -> None:
        """Remove the results of these cases."""
        with self._database.write() as connection:
            for key in case_keys:
                same = (workload_results.c.run_id == run_id, workload_results.c.case_key == key)
                connection.execute(delete(workload_results).where(*same))

    def load(self, run_id: str) -> WorkloadRun:
        """The run, deleted or not, with its results so far in the order of the plan. A result that cannot be read is a failure
        that says so. Errors: UnknownRun; DamagedRow."""
        chosen = select(workload_results).where(workload_results.c.run_id == run_id)
        with self._database.read() as connection:
            row = self._row(connection, run_id)
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
        return self._rows(self._newest(limit, offset, search, deleted))

    def _remove(self, connection: Connection, run_id: str) -> None:
        connection.execute(delete(workload_results).where(workload_results.c.run_id == run_id))
        connection.execute(delete(workload_runs).where(workload_runs.c.id == run_id))

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
        mechanics_only=_mechanics_only(row.header),
    )


class _KindOnly(msgspec.Struct, frozen=True):
    kind: str = ""


class _OnCpuOnly(msgspec.Struct, frozen=True):
    on_cpu: CpuMeaning = "measured"


class _HeaderOfRow(msgspec.Struct, frozen=True):
    """What a row of a list needs of the header."""

    devices: tuple[_KindOnly, ...]
    declared: _OnCpuOnly


def _mechanics_only(header: bytes) -> bool:
    try:
        of = msgspec.json.decode(header, type=_HeaderOfRow)
    except (msgspec.MsgspecError, ValueError):
        return False  # opening the run says that it is damaged
    return any(is_mechanics_only(of.declared.on_cpu, device.kind) for device in of.devices)


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
