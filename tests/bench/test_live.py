"""A run while it is measured, told by hand what a supervisor and its users tell it: no worker."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
import sample_runs as samples

from kernelviz.bench import remote_runs
from kernelviz.bench.event_log import EventLog
from kernelviz.bench.live import LiveRun
from kernelviz.core.errors import UnknownRun
from kernelviz.core.events import CaseDone, RunEnded
from kernelviz.core.problem import Plan, Problem
from kernelviz.core.result import Failure, Result
from kernelviz.core.run import Status
from kernelviz.store import Store, StoreError
from kernelviz.store.database import Database
from kernelviz.store.results import Results
from kernelviz.worker.request import Request
from tests.bench.bench_of_sessions import ops
from tests.worker.sessions import result

OP = ops()["add"]
PROBLEM = Problem(op="add", sizes={"n": 1}, dtype="fp32")
CRASH = Failure(stage="crash", message="signal 6")


class CountingResults(Results):
    """Remembers how much was written at a time, and how often results were read."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self.written: list[int] = []
        self.read = 0

    def of_cases(self, run_id: str, case_keys: Sequence[str]) -> dict[str, Result]:
        self.read += 1
        return super().of_cases(run_id, case_keys)

    def put(self, run_id: str, placed: Sequence[tuple[int, Result]]) -> None:
        self.written.append(len(placed))
        super().put(run_id, placed)


class CountingStore(Store):
    results: CountingResults

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.results = CountingResults(self._database)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CountingStore]:
    made = CountingStore(f"sqlite:///{tmp_path / 'kernelviz.db'}")
    yield made
    made.close()


def live_run(store: Store, *variants: str, count: int = 1) -> LiveRun:
    problems = tuple(Problem(op="add", sizes={"n": n}, dtype="fp32") for n in range(1, count + 1))
    plan = Plan(problems=problems, variants=variants, baseline=variants[0], device="cpu")
    run = samples.run([], id="r1", status="queued")
    run = type(run)(
        id="r1",
        title="",
        created_at="2026-01-01",
        status="queued",
        environment=run.environment,
        method=run.method,
        plan=plan,
    )
    store.runs.create(run)
    return LiveRun(run, OP, store, EventLog(len(plan.cases())))


def later_item(live: LiveRun, *variants: str) -> Request:
    return Request(
        run_id="r1",
        owner="",
        sink=live,
        problem=PROBLEM,
        variants=variants,
        later=True,
        timed_variants=lambda: live.timed_variants(PROBLEM, variants),
    )


def stages(store: Store) -> dict[str, str]:
    return {r.variant: r.outcome.stage if isinstance(r.outcome, Failure) else "" for r in store.runs.load("r1").results}


def test_a_cancel_before_the_later_figures_keeps_failures_and_times(store: CountingStore) -> None:
    live = live_run(store, "a", "abort")
    live.expect(2)
    live.put([result(PROBLEM, "a"), result(PROBLEM, "abort", CRASH)])
    live.ended("finished", "")
    live.abandon = lambda: [later_item(live, "a", "abort")]
    live.cancel()
    assert store.runs.row("r1").status == "cancelled"
    assert stages(store) == {"a": "", "abort": "crash"}
    told = [e.result.variant for _, e in live.log.follow(0, 0.0) if isinstance(e, CaseDone)]
    assert told == ["abort", "a"]  # only the time has got a note
    progress = live.log.progress()
    assert (progress.done, progress.failed) == (2, 1)


def test_cancelled_cases_are_neither_done_nor_failed_here_as_in_the_store(store: CountingStore) -> None:
    live = live_run(store, "a", "abort", "b")
    live.expect(2)
    live.put([result(PROBLEM, "a"), result(PROBLEM, "abort", CRASH)])
    live.ended("finished", "")
    live.abandon = lambda: [Request(run_id="r1", owner="", sink=live, problem=PROBLEM, variants=("b",))]
    live.cancel()
    progress, row = live.log.progress(), store.runs.row("r1")
    assert stages(store)["b"] == "cancelled"
    assert (progress.done, progress.failed) == (row.done, row.failed) == (2, 1)
    far = remote_runs.progress(store, "r1")
    assert (far.done, far.failed) == (2, 1)


def test_a_time_that_arrives_while_the_case_is_cancelled_is_kept(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = live_run(store, "a")
    measured = threading.Thread(target=lambda: live.put([result(PROBLEM, "a")]))
    read = store.results.of_cases

    def and_meanwhile(run_id: str, keys: Sequence[str]) -> dict[str, Result]:
        found = read(run_id, keys)
        if threading.current_thread() is not measured:
            measured.start()
            measured.join(0.1)  # it would be done by now
        return found

    monkeypatch.setattr(store.results, "of_cases", and_meanwhile)
    live.put([result(PROBLEM, "a", Failure(stage="cancelled", message=""))])
    measured.join(10)
    assert stages(store) == {"a": ""}


def test_a_big_plan_is_cancelled_in_few_reads_and_writes(store: CountingStore) -> None:
    live = live_run(store, "a", "b", "twice", count=400)
    queued = [
        Request(run_id="r1", owner="", sink=live, problem=p, variants=live.plan.variants) for p in live.plan.problems
    ]
    later = [
        Request(
            run_id="r1",
            owner="",
            sink=live,
            problem=p,
            variants=live.plan.variants,
            later=True,
            timed_variants=lambda p=p: live.timed_variants(p, live.plan.variants),  # type: ignore[misc]
        )
        for p in live.plan.problems
    ]
    live.expect(800)
    live.abandon = lambda: [*queued, *later]
    live.cancel()
    assert (store.results.written, store.results.read) == ([500, 500, 200], 3)
    found = store.runs.load("r1")
    assert (found.status, [r.case for r in found.results]) == ("cancelled", found.plan.cases())
    assert all(r.cost == OP.cost_of(r.problem) for r in found.results)


def test_an_end_that_cannot_be_stored_at_once_is_stored_as_interrupted(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = live_run(store, "a")
    live.expect(1)
    known = store.runs.set_status

    def full_once(run_id: str, status: Status) -> None:
        if status == "finished":
            raise StoreError("the database is locked")
        known(run_id, status)

    monkeypatch.setattr(store.runs, "set_status", full_once)
    live.ended("finished", "")
    assert store.runs.row("r1").status == "interrupted"
    assert [e for _, e in live.log.follow(0, 0.0)] == [RunEnded(status="interrupted", message="the database is locked")]


def test_what_is_discarded_while_its_end_is_stored_is_removed(
    store: CountingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    live = live_run(store, "a")
    live.expect(1)
    known = store.runs.set_status

    def meanwhile(run_id: str, status: Status) -> None:
        live.discard()
        known(run_id, status)

    monkeypatch.setattr(store.runs, "set_status", meanwhile)
    live.ended("finished", "")
    with pytest.raises(UnknownRun):
        store.runs.row("r1")


def test_what_is_discarded_when_it_has_ended_is_removed(store: CountingStore) -> None:
    live = live_run(store, "a")
    live.expect(1)
    live.ended("finished", "")
    live.discard()
    with pytest.raises(UnknownRun):
        store.runs.row("r1")


def test_a_number_of_events_in_memory_is_no_revision(store: CountingStore) -> None:
    """Of a follower whose process had the run before: it is told everything again, not nothing."""
    live = live_run(store, "a", "b")
    live.put([result(PROBLEM, "a")])
    live.put([result(PROBLEM, "b")])

    def told(after: int) -> list[str]:
        return [e.result.variant for _, e in remote_runs.follow(store, "r1", after, 0.0) if isinstance(e, CaseDone)]

    assert (told(0), told(1), told(2), told(20)) == (["a", "b"], ["b"], [], ["a", "b"])
