"""Why a database cannot be used: decided by the error's number, and said in text with the remedy."""

import errno
import os
import shutil
import sqlite3
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError, SQLAlchemyError

from kernelviz.core.notices import Notice, NoticeKind

_FULL_BYTES = 2**20
"""With less free space than this, an error of writing is taken for a full disk; SQLite needs 32 KiB to open a database."""
_IO_ERRORS = frozenset(
    {
        sqlite3.SQLITE_IOERR_WRITE,
        sqlite3.SQLITE_IOERR_FSYNC,
        sqlite3.SQLITE_IOERR_TRUNCATE,
        sqlite3.SQLITE_IOERR_SHMOPEN,
        sqlite3.SQLITE_IOERR_SHMSIZE,
        sqlite3.SQLITE_IOERR_SHMMAP,
    }
)
"""Errors of writing. SQLITE_IOERR_SHMSIZE: there is no room for the index of the log."""
_SQLSTATES: Mapping[str, NoticeKind] = MappingProxyType({"53100": "store_full", "25006": "store_read_only"})
"""PostgreSQL's numbers of disk_full and read_only_sql_transaction."""
_REMEDIES: Mapping[int, str] = MappingProxyType(
    {
        sqlite3.SQLITE_NOTADB: "the file is not a database; move it away or set KERNELVIZ_HOME",
        sqlite3.SQLITE_CORRUPT: "the file is damaged; move it away (and keep it), kernelviz then starts a new one",
        sqlite3.SQLITE_BUSY: "another program has kept it locked for 30 s; close that program",
        sqlite3.SQLITE_LOCKED: "another program has kept it locked for 30 s; close that program",
    }
)


def display(url: URL) -> str:
    """The address without its password and its options, which may also contain a password."""
    return url.set(query={}).render_as_string(hide_password=True)


def unwritable(url: URL, error: SQLAlchemyError) -> Notice | None:
    """Why nothing can be stored, if that is what the error says; None for any other error."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    kind = _SQLSTATES.get(getattr(cause, "sqlstate", None) or "")
    if isinstance(cause, sqlite3.Error):
        kind = _kind(getattr(cause, "sqlite_errorcode", 0), url.database or "")
    if kind is None:
        return None
    return Notice(kind, {"database": display(url), "error": message(url, error)}, "disk", "error")


def _kind(code: int, database: str) -> NoticeKind | None:
    primary = code & 0xFF
    if primary == sqlite3.SQLITE_FULL:
        return "store_full"
    if primary == sqlite3.SQLITE_READONLY:
        return "store_read_only"
    if primary != sqlite3.SQLITE_CANTOPEN and code not in _IO_ERRORS:
        return None
    folder = Path(database).parent
    if not os.access(folder, os.W_OK | os.X_OK):  # also where the file system is mounted read-only
        return "store_read_only"
    try:
        return "store_full" if shutil.disk_usage(folder).free < _FULL_BYTES else "store_refuses"
    except OSError as error:
        return "store_full" if error.errno == errno.ENOSPC else "store_refuses"


def message(url: URL, error: SQLAlchemyError) -> str:
    """What the database itself says, without the password."""
    text = str(error.orig) if isinstance(error, DBAPIError) and error.orig else str(error)
    return text.replace(str(url.password), "***") if url.password else text


def explained(url: URL, error: SQLAlchemyError) -> str:
    """An error of any other kind, with its remedy."""
    cause = error.orig if isinstance(error, DBAPIError) else None
    code = getattr(cause, "sqlite_errorcode", 0) & 0xFF
    remedy = _REMEDIES.get(code, "see the log for details")
    return f"the database {display(url)} cannot be used ({message(url, error)}): {remedy}"
