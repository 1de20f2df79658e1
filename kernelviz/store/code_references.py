"""Which runs name which artifacts, so that the artifacts of stored runs are the last to be removed."""

from collections.abc import Iterable

from sqlalchemy import Connection, select
from sqlalchemy.dialects.postgresql import insert as insert_postgresql
from sqlalchemy.dialects.sqlite import insert as insert_sqlite

from kernelviz.core import Result
from kernelviz.core.code import digests
from kernelviz.store.database import StorePart
from kernelviz.store.tables import code_references


class CodeReferences(StorePart):
    """The artifacts that stored runs name."""

    def all(self) -> frozenset[str]:
        """The digests that any stored run names."""
        with self._database.read() as connection:
            return frozenset(connection.scalars(select(code_references.c.digest).distinct()))

    def runs(self) -> frozenset[str]:
        """The ids of the stored runs that name an artifact."""
        with self._database.read() as connection:
            return frozenset(connection.scalars(select(code_references.c.run_id).distinct()))


def put_references(connection: Connection, run_id: str, given: Iterable[Result]) -> None:
    """Note the artifacts of these results. Those of a result that another one replaces stay noted until the run is removed."""
    named = dict.fromkeys(digest for result in given for digest in digests(result.code))
    if named:
        make = insert_postgresql if connection.dialect.name == "postgresql" else insert_sqlite
        rows = [{"run_id": run_id, "digest": digest} for digest in named]
        connection.execute(make(code_references).on_conflict_do_nothing(), rows)
