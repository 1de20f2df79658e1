"""Steps that bring the tables of an earlier version to the next one."""

from types import MappingProxyType

from sqlalchemy import Connection, inspect

from kernelviz.store import tables
from kernelviz.store.database import Migrations
from kernelviz.store.trends import rebuild


def _deletions(connection: Connection) -> None:
    connection.exec_driver_sql("ALTER TABLE runs ADD COLUMN deleted_at VARCHAR")


def _selftests(connection: Connection) -> None:
    tables.selftests.create(connection, checkfirst=True)


def _inspections(connection: Connection) -> None:
    tables.inspections.create(connection, checkfirst=True)


def _times(connection: Connection) -> None:
    connection.exec_driver_sql("CREATE INDEX IF NOT EXISTS results_by_stage ON results (run_id, stage)")
    tables.times.create(connection, checkfirst=True)
    rebuild(connection)


def _tunings(connection: Connection) -> None:
    tables.tunings.create(connection, checkfirst=True)
    # A table that the step before has created has the column already.
    for table, column in (
        ("runs", "spent_s FLOAT DEFAULT 0 NOT NULL"),
        ("times", "configuration VARCHAR DEFAULT '' NOT NULL"),
    ):
        known = {c["name"] for c in inspect(connection).get_columns(table)}
        if column.split()[0] not in known:
            connection.exec_driver_sql(f"ALTER TABLE {table} ADD COLUMN {column}")


MIGRATIONS: Migrations = MappingProxyType({1: _deletions, 2: _selftests, 3: _inspections, 4: _times, 5: _tunings})
"""By version: the step to the next version. A step runs in one transaction with the change of the version."""
