"""What the tables of runs have in common: status, title, note, deletion, and the process that measures a run."""

from typing import Any, ClassVar

from sqlalchemy import ColumnElement, Connection, Row, Select, Table, func, or_, select, update

from kernelviz.core import LIVING, Status, UnknownRun
from kernelviz.store.database import Database, StoreError, StorePart
from kernelviz.store.process_presence import Presence
from kernelviz.store.run_rows import status_of, stored_row


class RunRecords(StorePart):
    """A table of runs. `_subject`: the column with what a run measures. `_unknown`: the error for an id that it does not have."""

    _table: ClassVar[Table]
    _subject: ClassVar[str]
    _unknown: ClassVar[type[UnknownRun]] = UnknownRun

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._own = Presence.own()

    def set_status(self, run_id: str, status: Status) -> None:
        """Change the status of a run."""
        with self._database.write() as connection:
            connection.execute(update(self._table).where(self._table.c.id == run_id).values(status=status))

    def set_title_or_note(self, run_id: str, *, title: str | None = None, note: str | None = None) -> None:
        """Change title or note, which the document's digest does not include. Errors: UnknownRun."""
        values = {key: value for key, value in (("title", title), ("note", note)) if value is not None}
        with self._database.write() as connection:
            changed = update(self._table).where(self._table.c.id == run_id)
            if values and not connection.execute(changed.values(**values)).rowcount:
                raise self._unknown(run_id)

    def set_deleted(self, run_id: str, at: str | None) -> None:
        """Hide an ended run since `at` (ISO time), or show it again. Errors: UnknownRun; StoreError while it is measured."""
        with self._database.write() as connection:
            row = self._row(connection, run_id)
            if at is not None and status_of(row) in LIVING:
                raise StoreError(f"run {run_id} is being measured; cancel it before it is deleted")
            connection.execute(update(self._table).where(self._table.c.id == run_id).values(deleted_at=at))

    def purge(self, before: str) -> list[str]:
        """Remove permanently the runs that were deleted before that ISO time; return their ids."""
        with self._database.write() as connection:
            gone = list(connection.scalars(select(self._table.c.id).where(self._table.c.deleted_at < before)))
            for run_id in gone:
                self._remove(connection, run_id)
        return gone

    def claim(self, run_id: str) -> bool:
        """Make an ended run a queued run of this process. False while any process measures it. Errors: UnknownRun."""
        with self._database.write() as connection:
            if status_of(self._row(connection, run_id)) in LIVING:
                return False
            claimed = update(self._table).where(self._table.c.id == run_id)
            connection.execute(claimed.values(status="queued", **self._presence()))
            return True

    def interrupt_dead(self) -> list[str]:
        """Mark the runs whose process has ended as interrupted; return their ids."""
        columns = self._table.c
        with self._database.read() as connection:
            rows = connection.execute(select(self._table).where(columns.status.in_(LIVING))).all()
        dead = [row for row in rows if status_of(row) == "interrupted"]
        with self._database.write() as connection:
            for row in dead:
                # Only if no process has claimed it meanwhile.
                unchanged = (columns.id == row.id, columns.pid == row.pid, columns.pid_started_s == row.pid_started_s)
                connection.execute(update(self._table).where(*unchanged).values(status="interrupted"))
        return [row.id for row in dead]

    def count(self, *, search: str = "", deleted: bool = False) -> int:
        """The number of runs with all these terms in id, title, note, subject, device or status."""
        counted = select(func.count()).select_from(self._table).where(*self._matching(search, deleted))
        with self._database.read() as connection:
            return connection.scalar(counted) or 0

    def _newest(self, limit: int, offset: int, search: str, deleted: bool) -> Select[Any]:
        """The rows that `count` counts, the newest first."""
        columns = self._table.c
        matching = select(self._table).where(*self._matching(search, deleted))
        return matching.order_by(columns.created_at.desc(), columns.id.desc()).limit(limit).offset(offset)

    def _matching(self, search: str, deleted: bool) -> list[ColumnElement[bool]]:
        columns = self._table.c
        searched = [columns[name] for name in ("id", "title", "note", self._subject, "device", "status")]
        state = columns.deleted_at.is_not(None) if deleted else columns.deleted_at.is_(None)
        return [state, *(or_(*(c.icontains(term, autoescape=True) for c in searched)) for term in search.split())]

    def _row(self, connection: Connection, run_id: str) -> Row[Any]:
        return stored_row(connection, run_id, self._table, self._unknown)

    def _presence(self) -> dict[str, Any]:
        own = self._own
        return {"host": own.host, "boot_id": own.boot_id, "pid": own.pid, "pid_started_s": own.started_s}

    def _remove(self, connection: Connection, run_id: str) -> None:
        """Remove a run with all that belongs to it."""
        raise NotImplementedError
