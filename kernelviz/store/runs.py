"""Runs: the header, status, title and note of each run, and the process that measures it."""

from collections.abc import Sequence
from typing import Any

import msgspec
from sqlalchemy import Connection, case, delete, func, insert, select, update

from kernelviz.core import LIVING, Environment, Run, Search, TracerFailure, UnknownRun, version_1
from kernelviz.store.code_references import put_references
from kernelviz.store.database import DamagedRow, Database, StoreError, rows_with
from kernelviz.store.results import case_rows, read_results
from kernelviz.store.run_records import RunRecords
from kernelviz.store.run_rows import CaseCounts, RunHeader, RunRow, header_of, run_row, status_of, stored_row
from kernelviz.store.tables import code_references, results, runs, times

CACHED_RUNS = 4
"""Ended runs that stay in memory after reading, while they do not change; a run of 100 cases takes 20 MB there. A page reads
its run at each redraw, and unpacking a hundred cases takes 50 ms."""


class Runs(RunRecords):
    """All runs of one database."""

    _table, _subject = runs, "op"

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._cached: dict[object, Run] = {}
        self._cache_bytes: dict[str, int] = {}

    def create(self, *created: Run, owner: str = "", deleted_at: str | None = None) -> None:
        """Store runs with their results, all of them or none, as runs of this process."""
        # Before the write lock is acquired, because packing 100,000 cases takes many seconds and would block other writers.
        about = {"owner": owner, "deleted_at": deleted_at, **self._presence()}
        prepared = [(run, _run_values(run) | about, *case_rows(run)) for run in created]
        with self._database.write() as connection:
            for run, values, result_rows, time_rows in prepared:
                connection.execute(insert(runs).values(**values))
                for table, rows in ((results, result_rows), (times, time_rows)):
                    if rows:
                        connection.execute(insert(table), rows)
                put_references(connection, run.id, run.results)

    def add_device_time(self, run_id: str, seconds: float) -> None:
        """Add seconds to the time for which the run used its device."""
        with self._database.write() as connection:
            connection.execute(update(runs).where(runs.c.id == run_id).values(spent_s=runs.c.spent_s + seconds))

    def set_environment(self, run_id: str, environment: Environment) -> None:
        """Replace the header's environment by the worker's. Errors: UnknownRun."""
        with self._database.write() as connection:
            stored = header_of(stored_row(connection, run_id))
            header = msgspec.structs.replace(stored, environment=environment)
            device = environment.device
            values = {"header": msgspec.json.encode(header), "device": device.name, "device_uuid": device.uuid}
            connection.execute(update(runs).where(runs.c.id == run_id).values(**values))
            connection.execute(update(times).where(times.c.run_id == run_id).values(device_uuid=device.uuid))

    def remove(self, run_id: str) -> None:
        """Remove an ended run permanently, if it is there. Errors: StoreError while it is measured."""
        with self._database.write() as connection:
            row = connection.execute(select(runs).where(runs.c.id == run_id)).one_or_none()
            if row is not None and status_of(row) in LIVING:
                raise StoreError(f"run {run_id} is being measured; cancel it before it is removed")
            self._remove(connection, run_id)

    def load(self, run_id: str) -> Run:
        """The run, deleted or not, with its results so far in the order of the plan. A result that cannot be read is a failure
        that says so. Errors: UnknownRun; DamagedRow if what all results share cannot be read."""
        written = select(func.max(results.c.revision), func.count()).where(results.c.run_id == run_id)
        ordered = (
            select(results.c.case_key, results.c.body).where(results.c.run_id == run_id).order_by(results.c.position)
        )
        with self._database.read() as connection:  # one transaction, so that the results are those of the header
            row = stored_row(connection, run_id)
            state = (row, connection.execute(written).one())  # differs after each change of the run or its results
            if state in self._cached:
                return self._cached[state]
            try:
                header = header_of(row)
            except DamagedRow as error:
                self._database.damaged.add(error.what)
                raise
            rows = connection.execute(ordered).all()
            read = [result for _, result in read_results(self._database, connection, run_id, rows)]
        run = Run(
            id=row.id,
            title=row.title,
            note=row.note,
            created_at=row.created_at,
            status=status_of(row),
            environment=header.environment,
            method=header.method,
            plan=header.plan,
            results=tuple(read),
        )
        if run.status not in LIVING:
            # A new dict, because other threads may read this one.
            self._cached = dict([*self._cached.items(), (state, run)][-CACHED_RUNS:])
        return run

    def row(self, run_id: str) -> RunRow:
        """The summary of a run, deleted or not, with its counts. Errors: UnknownRun."""
        rows = self._rows(select(runs).where(runs.c.id == run_id))
        if not rows:
            raise UnknownRun(run_id)
        return rows[0]

    def rows(self, limit: int, offset: int = 0, *, search: str = "", deleted: bool = False) -> list[RunRow]:
        """Summaries, the newest runs first. `search`: terms that all occur in id, title, note, op, device or status."""
        return self._rows(self._newest(limit, offset, search, deleted))

    def is_own(self, row: RunRow) -> bool:
        """Whether this process measures the run, or measured it last."""
        # Without the start time, which varies by a tick; two live processes never share the other three.
        known, own = row.presence, self._own
        return (known.host, known.boot_id, known.pid) == (own.host, own.boot_id, own.pid) and known.alive()

    def tracer_failures(self, device_uuid: str) -> tuple[TracerFailure, ...]:
        """Why better tracers could not be used in the newest traced run on that device; empty before the first one."""
        newest = select(runs.c.header).where(runs.c.device_uuid == device_uuid).order_by(runs.c.created_at.desc())
        environments = (header.environment for header in self._decoded(newest.limit(5), RunHeader))
        newest_environment = next((e for e in environments if e.tracer is not None), None)
        if newest_environment is None:
            return ()
        return newest_environment.tracer_failures or version_1.tracer_failures(newest_environment.tracer)

    def last_level_cache_bytes(self, device_uuid: str) -> int | None:
        """The size of the last-level cache of that device as one of its newest runs reported it; None before the first one.

        It never changes, so headers are read until one has it.
        """
        if device_uuid in self._cache_bytes:
            return self._cache_bytes[device_uuid]
        newest = select(runs.c.header).where(runs.c.device_uuid == device_uuid).order_by(runs.c.created_at.desc())
        devices = (header.environment.device for header in self._decoded(newest.limit(5), RunHeader))
        reported = next((d.last_level_cache_bytes for d in devices if d.last_level_cache_bytes is not None), None)
        if reported is not None:
            self._cache_bytes[device_uuid] = reported
        return reported

    def environments(self, run_ids: Sequence[str]) -> dict[str, Environment]:
        """The environments of these runs by id, without those of runs that cannot be read."""
        with self._database.read() as connection:
            rows = list(rows_with(connection, select(runs.c.id, runs.c.header), runs.c.id, run_ids))
        headers = {row.id: self._readable(row.header, RunHeader, f"run {row.id}") for row in rows}
        return {run_id: header.environment for run_id, header in headers.items() if header is not None}

    def searches(self, run_ids: Sequence[str]) -> dict[str, Search]:
        """The searches of those of these runs that are tunings, by id."""
        with self._database.read() as connection:
            rows = list(rows_with(connection, select(runs.c.id, runs.c.header), runs.c.id, run_ids))
        headers = {row.id: self._readable(row.header, RunHeader, f"run {row.id}") for row in rows}
        searches = {run_id: header.plan.search for run_id, header in headers.items() if header is not None}
        return {run_id: search for run_id, search in searches.items() if search is not None}

    def variants(self, run_id: str) -> tuple[str, ...]:
        """The variants of the plan of a run; none if it was removed meanwhile or cannot be read."""
        with self._database.read() as connection:
            row = connection.execute(select(runs.c.id, runs.c.header).where(runs.c.id == run_id)).one_or_none()
        header = None if row is None else self._readable(row.header, RunHeader, f"run {row.id}")
        return () if header is None else header.plan.variants

    def _remove(self, connection: Connection, run_id: str) -> None:
        for column in (results.c.run_id, times.c.run_id, code_references.c.run_id, runs.c.id):
            connection.execute(delete(column.table).where(column == run_id))

    def _rows(self, chosen: Any) -> list[RunRow]:
        counts = select(
            results.c.run_id,
            func.sum(case((results.c.stage != "cancelled", 1), else_=0)).label("done"),
            func.sum(case((results.c.stage.not_in(("", "cancelled")), 1), else_=0)).label("failed"),
            func.sum(case((results.c.stage == "unavailable", 1), else_=0)).label("unavailable"),
            func.sum(case((results.c.stage == "cancelled", 1), else_=0)).label("cancelled"),
        ).group_by(results.c.run_id)
        with self._database.read() as connection:
            rows = connection.execute(chosen).all()
            counted = rows_with(connection, counts, results.c.run_id, [row.id for row in rows])
            by_run = {c.run_id: CaseCounts(c.done, c.failed, c.unavailable, c.cancelled) for c in counted}
        return [run_row(row, by_run.get(row.id, CaseCounts())) for row in rows]


def _run_values(run: Run) -> dict[str, Any]:
    return {
        "id": run.id,
        "header": msgspec.json.encode(RunHeader(environment=run.environment, method=run.method, plan=run.plan)),
        "title": run.title,
        "note": run.note,
        "created_at": run.created_at,
        "status": run.status,
        "op": run.plan.op,
        "device": run.environment.device.name,
        "device_uuid": run.environment.device.uuid,
        "cases": len(run.plan.cases()),
    }
