"""The database of one installation: runs, results, trends, roofs, selftests, inspections, tunings and workloads, each a part."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs
from sqlalchemy import URL

from kernelviz.core.notices import Notice
from kernelviz.store.code_folder import CodeFolder
from kernelviz.store.code_references import CodeReferences
from kernelviz.store.database import Database, StoreError
from kernelviz.store.device_records import Inspections, Roofs, Selftests, Tunings
from kernelviz.store.migrations import migrate
from kernelviz.store.results import Results
from kernelviz.store.runs import Runs
from kernelviz.store.trends import CaseTimes
from kernelviz.store.workloads import WorkloadRuns


def home() -> Path:
    """KERNELVIZ_HOME, else the user's data folder."""
    return Path(os.environ.get("KERNELVIZ_HOME") or platformdirs.user_data_dir("kernelviz")).expanduser()


class Store:
    """One database. Every method of its parts may be called from any thread."""

    def __init__(self, url: str | URL) -> None:
        """Open the database, and create or migrate its tables. Errors: StoreError."""
        self._database = Database(url, migrate)
        self.url = self._database.url.render_as_string(hide_password=False)
        self.results = Results(self._database)
        self.runs = Runs(self._database)
        self.trends = CaseTimes(self._database)
        self.roofs = Roofs(self._database)
        self.selftests = Selftests(self._database)
        self.inspections = Inspections(self._database)
        self.tunings = Tunings(self._database)
        self.workloads = WorkloadRuns(self._database)
        self.code_references = CodeReferences(self._database)
        self.code = CodeFolder(self._code_folder(), self.code_references.all)

    @classmethod
    def open(cls, folder: Path | None = None) -> Store:
        """The database in `folder`, by default KERNELVIZ_DATABASE_URL or the one in `home()`. Errors: StoreError."""
        url = os.environ.get("KERNELVIZ_DATABASE_URL") if folder is None else None
        if url:
            return cls(url)
        where = folder or home()
        try:
            where.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise StoreError(
                f"the folder {where} cannot be created ({error.strerror}); set KERNELVIZ_HOME to a folder that can be written"
            ) from error
        # Not as text: a folder may have ? or % in its name.
        return cls(URL.create("sqlite", database=str(where / "kernelviz.db")))

    @property
    def damaged(self) -> tuple[str, ...]:
        """What could not be read since the database was opened, because it is damaged there, by name."""
        return tuple(sorted(self._database.damaged))

    @property
    def unwritable(self) -> Notice | None:
        """Why nothing can be stored at present, by the last attempt to write; None if it can."""
        return self._database.unwritable

    def close(self) -> None:
        """Close the connections."""
        self._database.close()

    def _code_folder(self) -> Path | None:
        """Where the artifacts are: beside the database's file, in `home()` for a server's database, nowhere for one in memory."""
        url = self._database.url
        if url.drivername.startswith("sqlite"):
            return None if not url.database or url.database == ":memory:" else Path(url.database).parent / "code"
        return home() / "code"

    @property
    def folder(self) -> Path | None:
        """The folder of the database's file; None for a database that is no file."""
        url = self._database.url
        return Path(url.database).parent if url.drivername.startswith("sqlite") and url.database else None
