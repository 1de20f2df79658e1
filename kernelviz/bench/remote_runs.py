"""Runs that this process does not measure: another process measures them, or they have ended. They are read from the store."""

import time
from collections.abc import Iterator

from kernelviz.bench.summaries import Progress
from kernelviz.core import LIVING, CaseDone, Event, RunEnded
from kernelviz.formats import shipped_runs
from kernelviz.store import RunRow, Store

POLL_S = 0.3


def row(store: Store, run_id: str) -> RunRow | shipped_runs.Line:
    """The header of a run that is stored or came with the package. Raises UnknownRun."""
    return shipped_runs.line(run_id) if shipped_runs.is_shipped(run_id) else store.runs.row(run_id)


def follow(store: Store, run_id: str, after: int, timeout_s: float | None) -> Iterator[tuple[int, Event]]:
    """Results as they are stored, then RunEnded. For a run that has ended, only RunEnded. Raises UnknownRun."""
    status = row(store, run_id).status
    if status not in LIVING:
        yield after + 1, RunEnded(status=status)
        return
    # A number above the newest revision counts events in the memory of a process that measured the run before.
    seen = after if after <= store.results.newest_revision(run_id) else 0
    heard_s = time.monotonic()
    while True:
        # The status is read first, so that every result that was stored before the end is given before the end.
        status = store.runs.row(run_id).status
        for revision, result in store.results.after(run_id, seen):
            seen, heard_s = revision, time.monotonic()
            yield revision, CaseDone(result=result)
        if status not in LIVING:
            yield seen + 1, RunEnded(status=status)
            return
        if timeout_s is not None and time.monotonic() - heard_s >= timeout_s:
            return
        time.sleep(POLL_S if timeout_s is None else min(POLL_S, timeout_s))


def progress(store: Store, run_id: str) -> Progress:
    """The progress of the run. Raises UnknownRun."""
    run = row(store, run_id)
    message = ""
    if isinstance(run, RunRow) and run.status in LIVING:
        message = f"measured by process {run.presence.pid} on {run.presence.host}"
    return Progress(
        status=run.status,
        done=run.done,
        failed=run.failed - run.unavailable,
        total=run.cases,
        ahead=0,
        message=message,
        steps={},
        sequence=run.done,
    )
