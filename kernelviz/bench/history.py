"""Stored runs: find, name, delete, restore, import and export them."""

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import msgspec

from kernelviz import formats
from kernelviz.bench import backup
from kernelviz.bench.code import Code
from kernelviz.bench.code_facts import CodeFacts
from kernelviz.bench.code_listings import CodeListings
from kernelviz.bench.snapshots import selected
from kernelviz.bench.summaries import RunSummary, matches
from kernelviz.core import LIVING, BadField, Device, DocumentError, Run, UnknownRun, timestamps
from kernelviz.core.notices import Notice
from kernelviz.formats import document, recorded_times, shipped_runs
from kernelviz.metrics import foreign_times
from kernelviz.store import NotStored, RunRow, Store, StoreError

TITLE_CHARACTERS, NOTE_CHARACTERS = 200, 10_000
RESTORABLE_DAYS = 30
"""A deleted run can be restored for so many days. After that, the next start of a server removes it for good."""
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")


class History:
    """The runs of one store, and those that came with the package (which can only be opened)."""

    def __init__(self, store: Store, settle: Callable[[str], None] = lambda run_id: None) -> None:
        """`settle`: called with the id of a run before it is deleted, because this process may have left it as running."""
        self._store, self._settle = store, settle
        self.code = Code(store)
        self.code_facts = CodeFacts(self.code)
        self.code_listings = CodeListings(self.code, self.code_facts)

    @property
    def unwritable(self) -> tuple[Notice, ...]:
        """Why nothing can be stored at present, by the last attempt; empty if it can."""
        notice = self._store.unwritable
        return () if notice is None else (notice,)

    def find(self, search: str = "", *, limit: int = 50, offset: int = 0) -> tuple[RunSummary, ...]:
        """The newest runs first. `search`: words that all occur in id, title, note, op, device or status."""
        return tuple(_summary(row) for row in self._store.runs.rows(limit, offset, search=search))

    def count(self, search: str = "") -> int:
        """The number of runs that `find` would give without a limit."""
        return self._store.runs.count(search=search)

    def deleted(self, limit: int = 50) -> tuple[RunSummary, ...]:
        """Deleted runs that can be restored, the newest first."""
        return tuple(_summary(row) for row in self._store.runs.rows(limit, deleted=True))

    def shipped(self, search: str = "") -> tuple[RunSummary, ...]:
        """The runs that came with the package. `search`: as in `find`."""
        listed = tuple(map(_shipped_summary, shipped_runs.lines().values()))
        return tuple(run for run in listed if matches(run, search))

    def summary(self, run_id: str) -> RunSummary:
        """The summary of one run, deleted or not. Raises UnknownRun."""
        if shipped_runs.is_shipped(run_id):
            return _shipped_summary(shipped_runs.line(run_id))
        return _summary(self._store.runs.row(run_id))

    def openable(self, run_id: str) -> RunSummary:
        """The summary of a run that is not deleted. Raises UnknownRun."""
        summary = self.summary(run_id)
        if summary.deleted_at is not None:
            raise UnknownRun(run_id)
        return summary

    def times(self, run_id: str) -> Run:
        """The run; of one that is listed as recorded, the cold times alone (`formats.recorded_times`), which are quick to read.
        Errors: UnknownRun, DocumentError."""
        return recorded_times.load(run_id) if run_id in shipped_runs.lines() else self.load(run_id)

    def load(self, run_id: str) -> Run:
        """The run with all results so far. Raises UnknownRun, also when it was deleted."""
        return (shipped_runs if self.openable(run_id).shipped else self._store.runs).load(run_id)

    def results_on(self, device_uuid: str, case_keys: Sequence[str]) -> tuple[tuple[str, str, int], ...]:
        """Which stored runs have a result of these cases on that device: case key, id of the run, and the revision of the result,
        those of the newest run first."""
        return tuple(self._store.results.on_device(device_uuid, case_keys))

    def devices(self, run_ids: Sequence[str]) -> tuple[Device, ...]:
        """The devices of these runs, read without their results. A run that cannot be read is left out. Raises UnknownRun."""
        stored = [i for i in run_ids if not self.openable(i).shipped]
        shipped = [self.times(i).environment for i in run_ids if i not in stored]
        environments = (*self._store.runs.environments(stored).values(), *shipped)
        return tuple({e.device.uuid: e.device for e in environments}.values())

    def rename(self, run_id: str, title: str) -> None:
        """Errors: UnknownRun; BadField for a title that is too long or a run that came with the package."""
        self._changeable(run_id)
        self._store.runs.set_title_or_note(run_id, title=_checked_title(title))

    def annotate(self, run_id: str, note: str) -> None:
        """Errors: UnknownRun; BadField for a note that is too long or a run that came with the package."""
        self._changeable(run_id)
        self._store.runs.set_title_or_note(run_id, note=_checked_note(note))

    def delete(self, run_id: str) -> None:
        """Hide a run that has ended; `restore` brings it back within RESTORABLE_DAYS. Errors: UnknownRun; BadField; StoreError
        while it runs."""
        self._changeable(run_id)
        self._settle(run_id)
        self._store.runs.set_deleted(run_id, timestamps.now())

    def restore(self, run_id: str) -> None:
        """Restore a deleted run. Raises UnknownRun."""
        self._changeable(run_id)
        self._store.runs.set_deleted(run_id, None)

    def purge(self) -> list[str]:
        """Remove the runs for good that were deleted more than RESTORABLE_DAYS ago, and return their ids."""
        return self._store.runs.purge(timestamps.iso(datetime.now(UTC) - timedelta(days=RESTORABLE_DAYS)))

    def take_in(self, data: bytes | str, *, file: str = "") -> str:
        """Import the one run of a file in any format that can be read (see `take_in_all`), and return its id. Errors:
        DocumentError, also if the file holds several runs; nothing is stored then."""
        return self.add(_with_file_name(formats.one_of(formats.read(data)), file))

    def take_in_all(self, data: bytes | str, *, file: str = "") -> tuple[str, ...]:
        """Import every run of a file in any format that can be read, recognised by its content, and return their ids.

        `file`: its name, which is added to the titles of another tool's runs, because these files often hold the same benchmarks.
        Errors: DocumentError with the path of the field, StoreError; nothing of the file is stored then.
        """
        return self.add_all([_with_file_name(run, file) for run in formats.read(data)])

    def back_up(self, path: Path) -> backup.Backup:
        """Write everything that is stored to one file: runs, roofs, selftests, inspections, tunings. Errors: BadField,
        StoreError."""
        return backup.write(self._store, path)

    def take_in_backup(self, path: Path) -> backup.Backup:
        """Restore what a backup holds and is not stored yet. Errors: DocumentError, and nothing is stored then; BadField,
        StoreError."""
        return backup.restore(self._store, path, self.add_all)

    def add(self, run: Run) -> str:
        """Store a run that was measured elsewhere, and return its id here. See `add_all`."""
        return self.add_all((run,))[0]

    def add_all(self, runs: Sequence[Run], *, owner: str = "", deleted_at: str | None = None) -> tuple[str, ...]:
        """Store runs that were measured elsewhere, all or none, and return their ids here.

        A run with the same facts and the same id as a stored one is that run: it stays, and is restored if it was deleted. A
        run with other facts under an id that is used, or with an id that no address can hold, gets a new id. A run that was
        queued or in progress there counts as interrupted here. A new run is stored as deleted if `deleted_at` gives the time of
        its deletion.
        """
        try:
            return self._add_all(runs, owner, deleted_at)
        except NotStored:
            raise
        except StoreError:
            # Another process may have imported the same file in the meantime. Then its runs are known now.
            return self._add_all(runs, owner, deleted_at)

    def _add_all(self, runs: Sequence[Run], owner: str, deleted_at: str | None) -> tuple[str, ...]:
        ids: list[str] = []
        new: dict[str, Run] = {}
        for run in runs:
            importable = _importable(run)
            run_id, is_new = self._place(importable, new)
            ids.append(run_id)
            if is_new:
                new[run_id] = msgspec.structs.replace(importable, id=run_id)
        self._store.runs.create(*new.values(), owner=owner, deleted_at=deleted_at)
        self.code.take_in(runs)
        known = {i for i in ids if i not in new and not shipped_runs.is_shipped(i)}
        for run_id in known if deleted_at is None else ():
            self._store.runs.set_deleted(run_id, None)
        return tuple(ids)

    def _place(self, run: Run, new: Mapping[str, Run]) -> tuple[str, bool]:
        """The id that the run gets here, and whether it is new."""
        if _ID.fullmatch(run.id) and run.id not in new and self._known(run.id) is None:
            return run.id, True
        digest = document.digest(run)
        for run_id in (run.id, f"{run.id[:60]}-{digest[:12]}", f"imported-{digest[:12]}"):
            if not _ID.fullmatch(run_id):
                continue
            known = new.get(run_id) or self._known(run_id)
            if known is None:
                return run_id, True
            if document.digest(_importable(known)) == digest:
                return run_id, False
        raise DocumentError("ids made of its digest are taken by other runs", path="$.id")

    def document(self, run_id: str, to: str = "json") -> bytes:
        """The run as a file, by default the native document (JSON, UTF-8). Raises UnknownRun; UnknownName for the format."""
        return formats.export_named(to).encode(self.load(run_id))

    def snapshot(
        self,
        run_id: str,
        *,
        variants: Sequence[str] | None = None,
        problems: Collection[str] | None = None,
        title: str | None = None,
        note: str | None = None,
    ) -> Run:
        """A run, or a selection of its cases, with its own title and note. Nothing is stored. See `snapshots.selected`.

        Errors: UnknownRun; UnknownName, BadField for cases that the run does not have, or for texts that are too long.
        """
        return selected(
            self.load(run_id),
            variants=variants,
            problems=problems,
            title=None if title is None else _checked_title(title),
            note=None if note is None else _checked_note(note),
        )

    def _known(self, run_id: str) -> Run | None:
        if shipped_runs.is_shipped(run_id):
            return shipped_runs.load(run_id)
        try:
            return self._store.runs.load(run_id)
        except UnknownRun:
            return None

    def _changeable(self, run_id: str) -> None:
        if shipped_runs.is_shipped(run_id):
            raise BadField(
                "run", run_id, "it came with the package and cannot be changed; download it and upload the copy"
            )


def _with_file_name(run: Run, file: str) -> Run:
    """The run of another tool with the name of its file in the title."""
    if not file or not foreign_times.alone(run):
        return run
    return msgspec.structs.replace(run, title=f"{run.title[: TITLE_CHARACTERS - 63]} ({Path(file).name[:60]})")


def _importable(run: Run) -> Run:
    return msgspec.structs.replace(
        run,
        title=" ".join(run.title.split())[:TITLE_CHARACTERS],
        note=run.note[:NOTE_CHARACTERS],
        status="interrupted" if run.status in LIVING else run.status,
        # The files belong to another machine. A resumed run must never import a file that a document names.
        plan=msgspec.structs.replace(run.plan, plugins=()),
        code=msgspec.UNSET,
    )


def _checked_title(text: str) -> str:
    return _short_enough("title", " ".join(text.split()), TITLE_CHARACTERS)


def _checked_note(text: str) -> str:
    return _short_enough("note", text.strip(), NOTE_CHARACTERS)


def _short_enough(field: str, text: str, most: int) -> str:
    if len(text) > most:
        raise BadField(field, text[:40] + "…", f"it has {len(text)} characters; use at most {most}")
    return text


def _summary(row: RunRow) -> RunSummary:
    return RunSummary(
        id=row.id,
        title=row.title,
        op=row.op,
        device=row.device,
        created_at=row.created_at,
        status=row.status,
        cases=row.cases,
        done=row.done,
        failed=row.failed,
        unavailable=row.unavailable,
        cancelled=row.cancelled,
        note=row.note,
        deleted_at=row.deleted_at,
    )


def _shipped_summary(line: shipped_runs.Line) -> RunSummary:
    return RunSummary(**msgspec.structs.asdict(line), shipped=True)
