"""Connections to the database: SQLite in write-ahead mode unless KERNELVIZ_DATABASE_URL says otherwise."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

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
    insert,
    inspect,
    make_url,
    select,
    update,
)
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from kernelviz.core import KernelvizError
from kernelviz.core.chunks import parts
from kernelviz.core.notices import Notice
from kernelviz.store import sqlite_file, tables, temporary_copies
from kernelviz.store.unusable import display, explained, unwritable
from kernelviz.text.notices import format_notice

VERSION = 8
"""Version of the tables. A change of the tables increments this; store.migrations then adds what an older database lacks."""
Migrate = Callable[[Connection, int], None]
"""Changes the tables of that earlier version to those of VERSION."""
T = TypeVar("T")

TOGETHER = 500
"""Most values in one statement: SQLite accepts 32,766 (999 before version 3.32)."""
_VARIABLE = "KERNELVIZ_DATABASE_URL"


class StoreError(KernelvizError):
    """The database cannot be read or written; the message contains its address and the remedy."""


class NotStored(StoreError):
    """Nothing can be stored at present, for example because the disk is full. What is stored already can be read."""

    def __init__(self, notice: Notice) -> None:
        self.notice = notice
        super().__init__(str(format_notice(notice)))


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
        """Open the database, and create its tables or migrate them. Where nothing can be written, it is opened to be read.

        Errors: StoreError, whose message holds no password.
        """
        self._migrate = migrate
        self.damaged: set[str] = set()
        """What could not be read so far, because the database is damaged there."""
        self.unwritable: Notice | None = None
        """Why nothing can be stored at present, by the last attempt."""
        self.url = _parsed(url)
        self._file = _file(self.url)
        self._opening = threading.RLock()
        self._read_only_state: object = None
        """The size and the time of the files as they were read where nothing could be written; None otherwise."""
        _refuse_other_applications(self.url)
        temporary_copies.remove_leftovers()
        self._engine = self._writing_engine()
        self._make_tables()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        with self._errors(), self._connected() as connection:
            yield connection

    @contextmanager
    def write(self) -> Iterator[Connection]:
        """One transaction: all its changes are stored, or none. Errors: NotStored where nothing can be stored."""
        if self._read_only_state is not None:
            self._try_to_write()
        with self._errors(), self._engine.connect() as connection:
            writing = connection.execution_options(kernelviz_write=True)
            with writing.begin():
                yield writing
        self.unwritable = None

    def close(self) -> None:
        self._engine.dispose()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            yield
        except SQLAlchemyError as error:
            notice = unwritable(self.url, error)
            if notice is None:
                raise StoreError(explained(self.url, error)) from error
            self.unwritable = notice
            raise NotStored(notice) from error

    def _connected(self) -> Connection:
        """A connection for reading. If a file that is needed for it cannot be written, the database is opened read-only."""
        if self._read_only_state not in (None, self._state()):  # another process has written
            try:
                self._try_to_write()
            except NotStored as error:
                self._open_read_only(error.notice)
        try:
            return self._engine.connect()
        except SQLAlchemyError as error:
            notice = unwritable(self.url, error)
            if notice is None or self._file is None or not self._file.is_file() or not self._file.stat().st_size:
                raise
            try:
                self._open_read_only(notice)
                return self._engine.connect()
            except SQLAlchemyError:  # the first error says what is wrong
                raise error from None

    def _open_read_only(self, notice: Notice) -> None:
        """Read the file without writing anything, because of what the notice says. Errors: SQLAlchemyError."""
        if self._file is not None:
            with self._opening:
                self._engine.dispose()
                self._engine = sqlite_file.read_only_engine(self._file)
                self._read_only_state, self.unwritable = self._state(), notice

    def _try_to_write(self) -> None:
        """Open the database for writing, now that the disk may have room. Errors: NotStored, and it stays as it is."""
        with self._opening:
            if self._read_only_state is None:
                return
            self._engine.dispose()  # its connections may lock the file
            engine = self._writing_engine()
            with self._errors(), engine.connect():
                self._engine, self._read_only_state = engine, None

    def _writing_engine(self) -> Engine:
        engine = _engine(self.url)
        if engine.dialect.name == "sqlite":
            sqlite_file.prepare(engine)
        return engine

    def _state(self) -> tuple[object, ...]:
        """The size and the time of the database's file and of its log."""
        files = () if self._file is None else (self._file, self._file.with_name(f"{self._file.name}-wal"))
        stats = [file.stat() for file in files if file.exists()]
        return tuple((stat.st_size, stat.st_mtime_ns) for stat in stats if stat.st_size)

    def _make_tables(self) -> None:
        with self.read() as connection:
            version = _version(connection, self.url) if inspect(connection).has_table(tables.meta.name) else None
        if version == VERSION:
            return
        if version is not None and version > VERSION:
            raise StoreError(
                f"the database {display(self.url)} was written by a newer kernelviz (its version is {version}, this one reads "
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
            f"the database {display(url)} cannot be used: {url.drivername!r} is not a known kind of database; "
            f"set {_VARIABLE} to postgresql+psycopg://… or sqlite:///…"
        ) from None
    except ImportError as error:
        package = error.name or "its driver"
        raise StoreError(
            f"the database {display(url)} cannot be used: the Python package {package!r} is not installed; install it "
            "beside kernelviz (pip install 'psycopg[binary]' for PostgreSQL)"
        ) from None


def _version(connection: Connection, url: URL) -> int | None:
    """The version of the tables; None if there is none yet. Errors: StoreError."""
    text = connection.scalar(select(tables.meta.c.value).where(tables.meta.c.key == "version"))
    if text is None:
        return None
    if not text.isdecimal():
        raise StoreError(
            f"the database {display(url)} says that its version is {text[:40]!r}, which is no number: it is damaged, or of "
            "another program; move it away (and keep it), or set KERNELVIZ_HOME to another folder"
        )
    return int(text)


def _refuse_other_applications(url: URL) -> None:
    """Raise StoreError for an SQLite file with the tables of another application, before anything of it is changed."""
    path = _file(url)
    names = sqlite_file.tables_in(path) if path is not None and path.is_file() else set()
    # A newer kernelviz may have more tables; its version says so.
    if names and not {tables.meta.name, tables.runs.name} <= names:
        raise StoreError(
            f"the file {display(url)} is the database of another program (its tables: {', '.join(sorted(names))[:200]}); "
            "nothing in it was changed. Set KERNELVIZ_HOME to another folder"
        )


def _file(url: URL) -> Path | None:
    """The file of an SQLite database; None for any other database, and for one in memory."""
    return Path(url.database) if url.drivername.startswith("sqlite") and url.database else None
