"""The file of an SQLite database: its connections, and how it is read where nothing can be written."""

import sqlite3
import time
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import quote

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.exc import OperationalError
from sqlalchemy.pool import ConnectionPoolEntry

from kernelviz.store.temporary_copies import TemporaryCopy

_BUSY_MS = 30_000


def prepare(engine: Engine, *, read_only: bool = False) -> None:
    """Set what each connection and each transaction of this engine needs."""

    @event.listens_for(engine, "connect")
    def connected(connection: Any, record: ConnectionPoolEntry) -> None:
        connection.isolation_level = None  # transactions begin where the next listener says
        # SQLite's own function handles ASCII letters only; with this one a search for größe finds GRÖSSE.
        connection.create_function("lower", 1, _folded, deterministic=True)
        cursor = connection.cursor()
        cursor.execute(f"PRAGMA busy_timeout={_BUSY_MS}")
        cursor.execute("PRAGMA temp_store=MEMORY")  # a sort needs no room on the disk
        if read_only:
            cursor.execute("PRAGMA query_only=1")
        else:
            _write_ahead(cursor)
            cursor.execute("PRAGMA synchronous=NORMAL")
        cursor.close()

    @event.listens_for(engine, "begin")
    def begun(connection: Connection) -> None:
        # A reading transaction that starts to write fails at once with "database is locked", whatever the timeout. Therefore
        # a writing transaction acquires the write lock first, and waits for it.
        writing = connection.get_execution_options().get("kernelviz_write", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing else "BEGIN")


def read_only_engine(path: Path) -> Engine:
    """An engine that reads the file and creates no other one. Errors: SQLAlchemyError.

    In write-ahead mode SQLite needs a file of 32 KiB beside the database also to read it, which a full disk has no room for, and
    which cannot be made in a read-only folder.
    """
    if holds_log(path):
        # This VFS keeps the index of the log in memory. No other process can open the database meanwhile.
        engine = _reading(f"{_uri(path)}?mode=rw&vfs=unix-excl")
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("SELECT count(*) FROM sqlite_master")
        except OperationalError as error:
            engine.dispose()
            return _reading_a_copy(path, error)  # the VFS needs to lock the file, which takes the right to write it
        # Closing it, SQLite copies the log into the database's file where that needs no more room.
        engine.dispose()
        if holds_log(path):
            return engine
    return _reading(f"{_uri(path)}?mode=ro&immutable=1")


def _reading_a_copy(path: Path, error: OperationalError) -> Engine:
    """An engine that reads a copy of the database with its log, in the folder for temporary files; it is removed with the engine.

    Errors: the given one, if there is no room for a copy.
    """
    try:
        copy = TemporaryCopy(path, path.with_name(f"{path.name}-wal"))
    except OSError:
        raise error from None
    return _reading(f"{_uri(copy.path / path.name)}?mode=rw", copy)


def holds_log(path: Path) -> bool:
    """Whether transactions are stored beside the database's file that may not be in it yet."""
    try:
        return path.with_name(f"{path.name}-wal").stat().st_size > 0
    except OSError:
        return False


def tables_in(path: Path) -> set[str]:
    """The names of the tables of the file; empty if it cannot be read."""
    try:
        with closing(sqlite3.connect(f"{_uri(path)}?mode=ro", uri=True)) as connection:
            return {name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.Error:
        return set()


def _reading(uri: str, copy: TemporaryCopy | None = None) -> Engine:
    """An engine whose connections read. `copy`: what is needed as long as the engine is."""

    def connect(needed: object = copy) -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, check_same_thread=False)

    engine = create_engine("sqlite://", creator=connect, poolclass=QueuePool)
    prepare(engine, read_only=True)
    return engine


def _uri(path: Path) -> str:
    return f"file:{quote(str(path.absolute()))}"


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
