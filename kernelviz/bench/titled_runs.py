"""Runs that are found again by their titles, so that a second call continues what was cancelled: of claims and of layers."""

from collections.abc import Collection

from kernelviz.bench.bench import Bench
from kernelviz.bench.summaries import RunSummary
from kernelviz.core import LIVING, Method, Plan

MOST_RUNS = 5000
"""So many of the newest runs are looked through for those that are to be continued."""


def newest_by_title(bench: Bench, prefix: str, device_id: str) -> dict[str, RunSummary]:
    """The newest stored run of each title with that beginning on a device."""
    device = bench.device(device_id)
    newest: dict[str, RunSummary] = {}
    for run in bench.history.find(prefix, limit=MOST_RUNS):
        if run.device == device.name and run.title.startswith(prefix):
            newest.setdefault(run.title, run)
    return newest


def start(bench: Bench, plan: Plan, method: Method, title: str, earlier: RunSummary | None, owner: str) -> str:
    """Measure a plan, or the rest of it if its `earlier` run was cancelled or interrupted; returns the id of the run at once. A
    run that is measured already is returned as it is. Errors: UnknownName, BadField, StoreError."""
    if earlier is not None and earlier.status in LIVING:
        return earlier.id
    if earlier is not None and earlier.status != "finished":
        stored = bench.load(earlier.id)
        if stored.plan == plan and stored.method == method:
            bench.resume(earlier.id, owner=owner)
            return earlier.id
    return bench.run(plan, method, owner=owner, title=title)


def cancel(bench: Bench, prefix: str, device_id: str, titles: Collection[str] | None = None) -> None:
    """Cancel every run with such a title that is measured or waits on the device, or only those of these titles; results so far
    stay. Errors: BadField for one that another process measures."""
    for run in reversed(newest_by_title(bench, prefix, device_id).values()):
        if run.status in LIVING and (titles is None or run.title in titles):
            bench.cancel(run.id)


def living(bench: Bench, prefix: str, device_id: str) -> list[RunSummary]:
    """Such runs that are measured or wait: what is measured now, else what is measured next, comes first."""
    collected = [run for run in newest_by_title(bench, prefix, device_id).values() if run.status in LIVING]
    return sorted(collected, key=lambda run: (run.status != "running", bench.progress(run.id).ahead, run.id))
