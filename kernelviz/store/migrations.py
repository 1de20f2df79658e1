"""Migration of the database of an earlier version: missing columns and indexes are added from the declared tables."""

from sqlalchemy import Connection, inspect
from sqlalchemy.schema import CreateColumn

from kernelviz.store.tables import metadata
from kernelviz.store.trends import rebuild

_WITHOUT_TIMES = 4
"""The last version that did not store the times of cases apart from the results."""


def migrate(connection: Connection, version: int) -> None:
    """Add the columns and indexes that the tables of that version lack, and fill the tables that can be derived.

    Tables that are missing have been created before. All of it runs in one transaction with the change of the version.
    """
    for table in metadata.sorted_tables:
        present = {column["name"] for column in inspect(connection).get_columns(table.name)}
        for column in table.columns:
            if column.name not in present:
                definition = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {definition}")
        for index in table.indexes:
            index.create(connection, checkfirst=True)
    if version <= _WITHOUT_TIMES:
        rebuild(connection)
