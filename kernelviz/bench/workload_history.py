"""Stored runs of workloads: find, name, delete, restore, import and export them."""

import datetime
import re
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from kernelviz.bench.workload_plan import mechanics_only
from kernelviz.core import LIVING, BadField, DocumentError, Status, UnknownRun, timestamps
from kernelviz.core.workload import WorkloadRun
from kernelviz.core.workload_errors import UnknownWorkloadRun
from kernelviz.formats import shipped_workloads, workload_document
from kernelviz.formats.workload_explanations import with_present_explanations
from kernelviz.store import Store, WorkloadRow

TITLE_CHARACTERS, NOTE_CHARACTERS = 200, 10_000
RESTORABLE_DAYS = 30
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,79}")
MARK = "w-"
"""How the id of a run of a workload begins, so that it never equals that of another run."""


@dataclass(frozen=True, slots=True)
class WorkloadSummary:
    """A run of a workload in a list. `shipped`: it came with the package and cannot be changed. `mechanics_only`: its times say
    nothing about GPUs."""

    id: str
    title: str
    workload: str
    device: str
    created_at: str
    status: Status
    cases: int
    done: int
    failed: int
    note: str = ""
    deleted_at: str | None = None
    shipped: bool = False
    mechanics_only: bool = False

    @property
    def name(self) -> str:
        """The title, or the id of a run without one."""
        return self.title or self.id

    @property
    def case_counts(self) -> str:
        """How many cases have a result, and how many of these failed."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.done} of {self.cases} cases{failed}"


@dataclass(frozen=True, slots=True)
class Duration:
    """How long a run took from its beginning to its last result."""

    seconds: float
    cases: int


class WorkloadHistory:
    """The runs of workloads of one store, and those that came with the package (which can only be opened)."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._durations: dict[tuple[str, tuple[str, ...]], tuple[tuple[WorkloadSummary, ...], Duration | None]] = {}

    def find(self, search: str = "", *, limit: int = 50, offset: int = 0) -> tuple[WorkloadSummary, ...]:
        """The newest runs first. `search`: words that all occur in id, title, note, workload, device or status."""
        return tuple(map(_summary, self._store.workloads.rows(limit, offset, search=search)))

    def count(self, search: str = "") -> int:
        """The number of runs that `find` would give without a limit."""
        return self._store.workloads.count(search=search)

    def deleted(self, limit: int = 50) -> tuple[WorkloadSummary, ...]:
        """Deleted runs that can be restored, the newest first."""
        return tuple(map(_summary, self._store.workloads.rows(limit, deleted=True)))

    def shipped(self, workload: str | None = None) -> tuple[WorkloadSummary, ...]:
        """The runs that came with the package, of one workload or of all."""
        runs = (shipped_workloads.load(name) for name in shipped_workloads.names())
        return tuple(_of_run(run) for run in runs if workload in (None, run.plan.workload))

    def is_known(self, run_id: str) -> bool:
        """Whether there is a run of a workload with that id, deleted or not."""
        try:
            self.summary(run_id)
        except UnknownRun:
            return False
        return True

    def summary(self, run_id: str) -> WorkloadSummary:
        """The summary of one run, deleted or not. Errors: UnknownRun."""
        if run_id in shipped_workloads.names():
            return _of_run(shipped_workloads.load(run_id))
        return _summary(self._store.workloads.row(run_id))

    def load(self, run_id: str) -> WorkloadRun:
        """The run with all results so far, and with the directions and explanations that this version declares. Errors:
        UnknownRun, also when it was deleted."""
        if self.summary(run_id).deleted_at is not None:
            raise UnknownWorkloadRun(run_id)
        if run_id in shipped_workloads.names():
            return shipped_workloads.load(run_id)
        return with_present_explanations(self._store.workloads.load(run_id))

    def last_duration(self, workload: str, devices: Sequence[str]) -> Duration | None:
        """How long the newest finished run of a workload on these devices took; None if there is none.

        Runs are read again only when the list of finished runs has changed, because a form asks at each redraw."""
        finished = tuple(
            row for row in self.find(workload, limit=20) if row.workload == workload and row.status == "finished"
        )
        key = workload, tuple(devices)
        known = self._durations.get(key)
        if known is None or known[0] != finished:
            known = self._durations[key] = finished, self._duration_of_newest(finished, tuple(devices))
        return known[1]

    def _duration_of_newest(self, finished: Sequence[WorkloadSummary], devices: tuple[str, ...]) -> Duration | None:
        for summary in finished:
            run = self.load(summary.id)
            ended = [moment for result in run.results if (moment := _moment(result.measured_at))]
            began = _moment(run.created_at)
            if run.plan.devices == devices and ended and began is not None and max(ended) > began:
                return Duration((max(ended) - began).total_seconds(), len(run.results))
        return None

    def rename(self, run_id: str, title: str) -> None:
        """Errors: UnknownRun; BadField for a title that is too long or a run that came with the package."""
        self._changeable(run_id)
        self._store.workloads.set_title_or_note(
            run_id, title=short_enough("title", " ".join(title.split()), TITLE_CHARACTERS)
        )

    def annotate(self, run_id: str, note: str) -> None:
        """Errors: UnknownRun; BadField for a note that is too long or a run that came with the package."""
        self._changeable(run_id)
        self._store.workloads.set_title_or_note(run_id, note=short_enough("note", note.strip(), NOTE_CHARACTERS))

    def delete(self, run_id: str) -> None:
        """Hide a run that has ended; `restore` brings it back. Errors: UnknownRun; BadField; StoreError while it runs."""
        self._changeable(run_id)
        self._store.workloads.set_deleted(run_id, timestamps.now())

    def restore(self, run_id: str) -> None:
        """Restore a deleted run. Errors: UnknownRun."""
        self._changeable(run_id)
        self._store.workloads.set_deleted(run_id, None)

    def purge(self) -> list[str]:
        """Remove the runs for good that were deleted more than RESTORABLE_DAYS ago, and return their ids."""
        before = datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=RESTORABLE_DAYS)
        return self._store.workloads.purge(timestamps.iso(before))

    def document(self, run_id: str) -> bytes:
        """The run as a file of ``kernelviz-workload/1``. Errors: UnknownRun."""
        return workload_document.encode(self.load(run_id))

    def take_in(self, data: bytes | str) -> str:
        """Import the run of a file, and return its id here. Errors: DocumentError, and nothing is stored then; StoreError."""
        return self.add(workload_document.decode(data))

    def add(self, run: WorkloadRun, *, owner: str = "", deleted_at: str | None = None) -> str:
        """Store a run that was measured elsewhere, and return its id here. A run with the same facts and id as a stored one is
        that run, and is restored if it was deleted; one with other facts under that id gets a new id."""
        run = _importable(run)
        digest = workload_document.digest(run)
        for run_id in (run.id, f"{run.id[:60]}-{digest[:12]}", f"{MARK}imported-{digest[:12]}"):
            if not (_ID.fullmatch(run_id) and run_id.startswith(MARK)):
                continue
            known = self._known(run_id)
            if known is None:
                self._store.workloads.create(
                    msgspec.structs.replace(run, id=run_id), owner=owner, deleted_at=deleted_at
                )
                return run_id
            if workload_document.digest(_importable(known)) == digest:
                if deleted_at is None and run_id not in shipped_workloads.names():
                    self._store.workloads.set_deleted(run_id, None)
                return run_id
        raise DocumentError("ids made of its digest are taken by other runs", path="$.id")

    def _known(self, run_id: str) -> WorkloadRun | None:
        if run_id in shipped_workloads.names():
            return shipped_workloads.load(run_id)
        try:
            return self._store.workloads.load(run_id)
        except UnknownRun:
            return None

    def _changeable(self, run_id: str) -> None:
        if run_id in shipped_workloads.names():
            raise BadField("run", run_id, "it came with the package and cannot be changed")


def _importable(run: WorkloadRun) -> WorkloadRun:
    return msgspec.structs.replace(
        run,
        title=run.title[:TITLE_CHARACTERS],
        note=run.note[:NOTE_CHARACTERS],
        status="interrupted" if run.status in LIVING else run.status,
        # A resumed run must never import a file that a document names.
        plan=msgspec.structs.replace(run.plan, plugins=()),
    )


def _moment(stamp: str | None) -> datetime.datetime | None:
    try:
        moment = datetime.datetime.fromisoformat(stamp or "")
    except ValueError:
        return None
    return moment if moment.tzinfo is not None else None


def short_enough(field: str, text: str, most: int) -> str:
    if len(text) > most:
        raise BadField(field, text[:40] + "…", f"it has {len(text)} characters; use at most {most}")
    return text


def _summary(row: WorkloadRow) -> WorkloadSummary:
    names = (
        "id",
        "title",
        "workload",
        "device",
        "created_at",
        "status",
        "cases",
        "done",
        "failed",
        "note",
        "deleted_at",
        "mechanics_only",
    )
    return WorkloadSummary(**{name: getattr(row, name) for name in names})


def _of_run(run: WorkloadRun) -> WorkloadSummary:
    done = [r for r in run.results if not r.given_up]
    return WorkloadSummary(
        id=run.id,
        title=run.title,
        workload=run.plan.workload,
        device=" + ".join(d.name for d in run.devices),
        created_at=run.created_at,
        status=run.status,
        cases=len(run.plan.cases),
        done=len(done),
        failed=sum(r.failed for r in done),
        note=run.note,
        shipped=True,
        mechanics_only=mechanics_only(run.declared, run.devices[0]),
    )
