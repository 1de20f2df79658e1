"""Connections to the database: SQLite in write-ahead mode unless KERNELVIZ_DATABASE_URL says otherwise."""

import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

import msgspec
from sqlalchemy import (
    URL,
    Column,
    ColumnElement,
    Connection,
    Engine,
    Row,
    Select,
    create_engine,
    event,
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, SQLAlchemyError
from sqlalchemy.pool import ConnectionPoolEntry

from kernelviz.core import KernelvizError
from kernelviz.core.chunks import parts
from kernelviz.store import tables

VERSION = 6
"""Version of the tables. A change of the tables increments this; store.migrations then adds what an older database lacks."""
Migrate = Callable[[Connection, int], None]
"""Changes the tables of that earlier version to those of VERSION."""
T = TypeVar("T")

_BUSY_MS = 30_000
TOGETHER = 500
"""Most values in one statement: SQLite accepts 32,766 (999 before version 3.32)."""
_VARIABLE = "KERNELVIZ_DATABASE_URL"


class StoreError(KernelvizError):
    """The database cannot be read or written; the message contains its address and the remedy."""


class DamagedRow(StoreError):
    """A row that cannot be read, because its bytes are not those that were written. All other rows can."""

    def __init__(self, what: str) -> None:
        self.what = what
        super().__init__(f"{what} cannot be read, because the database is damaged there")


def decoded(body: bytes, kind: type[T], what: str) -> T:
    """The value of a body. `what` names it. Errors: DamagedRow."""
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise DamagedRow(what) from error


class Database:
    """An engine whose writing transactions acquire SQLite's write lock at their start."""

    def __init__(self, url: str | URL, migrate: Migrate) -> None:
        """Open the database, and create its tables or migrate them.

        Errors: StoreError, whose message holds no password.
        """
        self._migrate = migrate
        self.damaged: set[str] = set()
        """What could not be read so far, because the database is damaged there."""
        self.url = _parsed(url)
        _refuse_other_applications(self.url)
        self._engine = _engine(self.url)
        with self._errors():
            if self._engine.dialect.name == "sqlite":
                _prepare_sqlite(self._engine)
            self._make_tables()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._errors(), self._engine.connect() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: all its changes are stored, or none."""
        with self._errors(), self._engine.connect() as connection:
            writing = connection.execution_options(kernelviz_write=True)
            with writing.begin():
                yield writing

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            raise StoreError(_explained(self.url, error)) from error

    def _make_tables(self) -> None:
        with self.read() as connection:
            version = _version(connection, self.url) if inspect(connection).has_table(tables.meta.name) else None
        if version == VERSION:
            return
        if version is not None and version > VERSION:
            raise StoreError(
                f"the database {_display(self.url)} was written by a newer kernelviz (its version is {version}, this one reads "
                f"up to {VERSION}); update kernelviz, or set KERNELVIZ_HOME to another folder"
            )
        with self.write() as connection:
            # Read again: another process may have written between the first read and the write lock.
            tables.metadata.create_all(connection)
            version = _version(connection, self.url)
            if version is None:
                connection.execute(insert(tables.meta).values(key="version", value=str(VERSION)))
            elif version < VERSION:
                self._migrate(connection, version)
                connection.execute(update(tables.meta).where(tables.meta.c.key == "version").values(value=str(VERSION)))


class StorePart:
    """The statements on the tables of one subject."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def _decoded(self, query: Select[bytes], kind: type[T]) -> Iterator[T]:
        """The decoded bodies that a query selects, one at a time. A damaged row is left out, and noted."""
        with self._database.read() as connection:
            for number, body in enumerate(connection.scalars(query), 1):
                value = self._readable(body, kind, f"{kind.__name__.lower()} {number} of {query.get_final_froms()[0]}")
                if value is not None:
                    yield value

    def _readable(self, body: bytes, kind: type[T], what: str) -> T | None:
        """The value of a body; None for a damaged one, which is noted under its name."""
        try:
            return decoded(body, kind, what)
        except DamagedRow as error:
            self._database.damaged.add(error.what)
            return None


def equal(wanted: Mapping[Column[str], str | None]) -> list[ColumnElement[bool]]:
    """The conditions that each column has its value; a value of None is no condition."""
    return [column == value for column, value in wanted.items() if value is not None]


def rows_with(
    connection: Connection, query: Select[Any], column: Column[str], values: Sequence[str]
) -> Iterator[Row[Any]]:
    """The rows of a query whose column has one of many values, in as many statements as necessary."""
    for some in parts(values, TOGETHER):
        yield from connection.execute(query.where(column.in_(some)))


def _parsed(url: str | URL) -> URL:
    """The parsed address. Raises StoreError, which does not repeat the text, because it may contain a password."""
    try:
        parsed = make_url(url)
    except (ArgumentError, ValueError):  # the latter: a port that is no number
        parsed = None
    # SQLAlchemy takes the text after the first @ as the host, even where it is still part of the password.
    if parsed is None or "@" in (parsed.host or ""):
        raise StoreError(
            f"{_VARIABLE} is not the address of a database (it is not shown, because it may contain a password); write it as "
            "postgresql+psycopg://user:password@host:5432/name, with %40 for @, %2F for / and %3A for : in the password, "
            "or unset it for SQLite"
        ) from None
    return parsed


def _engine(url: URL) -> Engine:
    """The engine. Raises StoreError where the driver of such a database is missing."""
    try:
        return create_engine(url)
    except NoSuchModuleError:
        raise StoreError(
            f"the database {_display(url)} cannot be used: {url.drivername!r} is not a known kind of database; "
            f"set {_VARIABLE} to postgresql+psycopg://… or sqlite:///…"
        ) from None
    except ImportError as error:
        package = error.name or "its driver"
        raise StoreError(
            f"the database {_display(url)} cannot be used: the Python package {package!r} is not installed; install it "
            "beside kernelviz (pip install 'psycopg[binary]' for PostgreSQL)"
        ) from None


def _display(url: URL) -> str:
    """The address without its password and its options, which may also contain a password."""
    return url.set(query={}).render_as_string(hide_password=True)


def _version(connection: Connection, url: URL) -> int | None:
    """The version of the tables; None if there is none yet. Errors: StoreError."""
    text = connection.scalar(select(tables.meta.c.value).where(tables.meta.c.key == "version"))
    if text is None:
        return None
    if not text.isdecimal():
        raise StoreError(
            f"the database {_display(url)} says that its version is {text[:40]!r}, which is no number: it is damaged, or of "
            "another program; move it away (and keep it), or set KERNELVIZ_HOME to another folder"
        )
    return int(text)


def _refuse_other_applications(url: URL) -> None:
    """Raise StoreError for an SQLite file with the tables of another application, before anything of it is changed."""
    path = url.database
    if not url.drivername.startswith("sqlite") or not path or not Path(path).is_file():
        return
    try:
        with closing(sqlite3.connect(f"file:{quote(str(Path(path).absolute()))}?mode=ro", uri=True)) as connection:
            names = {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:  # opening it says why it cannot be used
        return
    # A newer kernelviz may have more tables; its version says so.
    if names and not {tables.meta.name, tables.runs.name} <= names:
        raise StoreError(
            f"the file {_display(url)} is the database of another program (its tables: {', '.join(sorted(names))[:200]}); "
            "nothing in it was changed. Set KERNELVIZ_HOME to another folder"
        )


def _prepare_sqlite(engine: Engine) -> None:
    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions begin where the next listener says
        # SQLite's own function handles ASCII letters only; with this one a search for größe finds GRÖSSE.
        connection.create_function("lower", 1, _folded, deterministic=True)
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        _write_ahead(cursor)
        cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # A reading transaction that starts to write fails at once with "database is locked", whatever the timeout. Therefore
        # a writing transaction acquires the write lock first, and waits for it.
        writing = connection.get_execution_options().get("kernelviz_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def _folded(value: object) -> object:
    """
    >>> _folded("Größe") == _folded("GRÖSSE"), _folded(None), _folded(3)
    (True, None, 3)
    """
    return value.casefold() if isinstance(value, str) else value


def _write_ahead(cursor: Any) -> None:
    """Switch the file to write-ahead mode; retry, because the switch does not wait for other connections."""
    until_s = time.monotonic() + _BUSY_MS / 1000
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] not in ("wal", "memory"):
        try:
            cursor.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as error:
            if (
                error.sqlite_errorcode & 0xFF not in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
                or time.monotonic() > until_s
            ):
                raise
            time.sleep(0.01)


def _explained(url: URL, error: SQLAlchemyError) -> str:
    text = str(error.orig) if isinstance(error, DatabaseError) and error.orig else str(error)
    if url.password:
        text = text.replace(str(url.password), "***")
    remedies = {
        "readonly": "the folder or the file is read-only for this user; give it write permission or set KERNELVIZ_HOME",
        "full": "the disk is full; free some space, then resume the run",
        "unable to open": "its folder cannot be written; set KERNELVIZ_HOME to a folder that can",
        "not a database": "the file is not a database; move it away or set KERNELVIZ_HOME",
        "malformed": "the file is damaged; move it away (and keep it), kernelviz then starts a new one",
        "locked": "another program has kept it locked for 30 s; close that program",
    }
    remedy = next((r for sign, r in remedies.items() if sign in text.lower()), "see the log for details")
    return f"the database {_display(url)} cannot be used ({text}): {remedy}"
