"""Results of runs: one row per case, with a revision that gives the order of writing."""

from collections.abc import Iterable, Sequence
from typing import Any

from sqlalchemy import Connection, delete, func, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from kernelviz.core import Case, Failure, Result, Run
from kernelviz.core.chunks import parts
from kernelviz.core.finite import finite_result
from kernelviz.store.code_references import put_references
from kernelviz.store.database import TOGETHER, Database, StorePart, rows_with
from kernelviz.store.result_encoding import Damaged, damaged, packed, unpacked
from kernelviz.store.run_rows import AnyRow, header_of, stored_row
from kernelviz.store.tables import results, runs, times
from kernelviz.store.trends import put_times, times_rows


class Results(StorePart):
    """The results of all runs."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._dropped_at: dict[str, int] = {}

    def put(self, run_id: str, placed: Sequence[tuple[int, Result]]) -> None:
        """Store results at their positions in the plan; a new result replaces that of the same case. Errors: UnknownRun."""
        with self._database.write() as connection:
            row = stored_row(connection, run_id)
            header = header_of(row)
            finite = [(position, finite_result(given)) for position, given in placed]
            make = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
            values = _result_rows(run_id, finite, row.device_uuid, self._revision(connection, run_id) + 1)
            if values:
                added = make(results)
                replaced = {name: added.excluded[name] for name in values[0] if name not in ("run_id", "case_key")}
                connection.execute(
                    added.on_conflict_do_update(index_elements=["run_id", "case_key"], set_=replaced), values
                )
            put_times(connection, run_id, row.device_uuid, header.method, header.plan, [given for _, given in finite])
            put_references(connection, run_id, [given for _, given in finite])

    def drop(self, run_id: str, case_keys: Iterable[str]) -> None:
        """Remove the results of these cases."""
        with self._database.write() as connection:
            # The newest may be among them; its revision must not be used again, because followers have seen it.
            self._dropped_at[run_id] = self._revision(connection, run_id)
            for some in parts(list(case_keys), TOGETHER):
                for table in (results, times):
                    connection.execute(delete(table).where(table.c.run_id == run_id, table.c.case_key.in_(some)))

    def of_cases(self, run_id: str, case_keys: Sequence[str]) -> dict[str, Result]:
        """The results of these cases by key; cases without a result are missing."""
        chosen = select(results.c.case_key, results.c.body).where(results.c.run_id == run_id)
        with self._database.read() as connection:
            rows = list(rows_with(connection, chosen, results.c.case_key, case_keys))
            return {row.case_key: result for row, result in read_results(self._database, connection, run_id, rows)}

    def on_device(self, device_uuid: str, case_keys: Sequence[str]) -> list[tuple[str, str, int]]:
        """The case key, run and revision of each stored result of these cases on that device, those of the newest run first;
        without deleted runs and cancelled cases."""
        chosen = (
            select(results.c.case_key, results.c.run_id, results.c.revision, runs.c.created_at)
            .join(runs, runs.c.id == results.c.run_id)
            .where(runs.c.device_uuid == device_uuid, runs.c.deleted_at.is_(None), results.c.stage != "cancelled")
        )
        with self._database.read() as connection:
            rows = list(rows_with(connection, chosen, results.c.case_key, case_keys))
        newest = sorted(rows, key=lambda row: (row.created_at, row.run_id), reverse=True)
        return [(row.case_key, row.run_id, row.revision) for row in newest]

    def after(self, run_id: str, revision: int) -> list[tuple[int, Result]]:
        """The results that were written after that revision, each with its revision, in the order of writing."""
        newer = select(results.c.revision, results.c.case_key, results.c.body).where(
            results.c.run_id == run_id, results.c.revision > revision
        )
        with self._database.read() as connection:
            rows = connection.execute(newer.order_by(results.c.revision)).all()
            return [(row.revision, result) for row, result in read_results(self._database, connection, run_id, rows)]

    def newest_revision(self, run_id: str) -> int:
        """The revision of the run's last written result; 0 when there is none."""
        with self._database.read() as connection:
            return self._revision(connection, run_id)

    def _revision(self, connection: Connection, run_id: str) -> int:
        last = connection.scalar(select(func.max(results.c.revision)).where(results.c.run_id == run_id)) or 0
        return max(last, self._dropped_at.get(run_id, 0))


def read_results(
    database: Database, connection: Connection, run_id: str, rows: Sequence[AnyRow]
) -> list[tuple[AnyRow, Result]]:
    """The results of rows with `case_key` and `body`. One whose body is damaged becomes a failure that says so, and is noted;
    it is left out if the run's plan has no such case. Errors: DamagedRow if the run's header is damaged, too."""
    read: list[tuple[AnyRow, Result]] = []
    cases: dict[str, Case] = {}
    for row in rows:
        try:
            read.append((row, unpacked(row.body)))
        except Damaged:
            database.damaged.add(f"the result of {row.case_key} in run {run_id}")
            cases = cases or {case.key: case for case in header_of(stored_row(connection, run_id)).plan.cases()}
            if row.case_key in cases:
                case = cases[row.case_key]
                read.append((row, damaged(case.problem, case.variant)))
    return read


def case_rows(run: Run) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Rows for the results of a new run and for their times; of two results of one case the later one is used."""
    last = {result.case.key: (i, finite_result(result)) for i, result in enumerate(run.results)}
    last_results, uuid = list(last.values()), run.environment.device.uuid
    return (
        _result_rows(run.id, last_results, uuid, 1),
        times_rows(run.id, uuid, run.method, run.plan, [result for _, result in last_results]),
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
