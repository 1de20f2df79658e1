"""Runs whose end or beginning went wrong, or that another process resumed: none stays as running, nothing good is lost."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import psutil
import pytest

from kernelviz.bench import Bench
from kernelviz.core.errors import BadField
from kernelviz.core.events import RunEnded
from kernelviz.core.result import Result
from kernelviz.core.run import LIVING, Run
from kernelviz.store import RunRow, StoreError
from kernelviz.worker.device_lock import DeviceLock
from tests.bench.bench_of_sessions import bench_in
from tests.bench.test_bench import SHORT, followed, is_measuring, plan, stages, until
from tests.worker.sessions import DEVICE


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


@pytest.fixture
def elsewhere(tmp_path: Path) -> Iterator[Bench]:
    """A bench on the same store that counts as one of another process, which lives."""
    made = bench_in(tmp_path)
    parent = psutil.Process(os.getppid())
    made._store.runs._own = msgspec.structs.replace(
        made._store.runs._own, pid=parent.pid, started_s=parent.create_time()
    )
    yield made
    made.close()


@pytest.fixture
def lock(tmp_path: Path) -> Iterator[DeviceLock]:
    """Somebody else measures: what is queued stays there."""
    held = DeviceLock(DEVICE.uuid, tmp_path)
    assert held.acquire(lambda holder: None, lambda: False)
    yield held
    held.release()
    held.close()


def full(*arguments: object) -> None:
    raise StoreError("the disk is full")


def cancelled(bench: Bench, *variants: str) -> str:
    """A run of which nothing was measured, since somebody else holds the device."""
    run_id = bench.run(plan(bench, *variants), SHORT)
    bench.cancel(run_id)
    assert followed(bench, run_id)[-1] == RunEnded(status="cancelled")
    return run_id


def left_running(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> str:
    """A run whose end could not be stored at all."""
    with monkeypatch.context() as patched:
        patched.setattr(bench._store.runs, "set_status", full)
        run_id = bench.run(plan(bench, "needs_cuda"), SHORT)
    assert bench._store.runs.row(run_id).status in LIVING
    assert bench.progress(run_id).status == "interrupted"
    assert followed(bench, run_id)[-1] == RunEnded(status="interrupted", message="the disk is full")
    return run_id


def test_a_run_whose_end_could_not_be_stored_can_be_cancelled_resumed_discarded_and_deleted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = left_running(bench, monkeypatch)
    bench.cancel(run_id)
    assert bench.load(run_id).status == "interrupted"
    run_id = left_running(bench, monkeypatch)
    bench.resume(run_id)
    assert bench.load(run_id).status == "finished"
    run_id = left_running(bench, monkeypatch)
    bench.history.delete(run_id)
    assert [r.id for r in bench.history.deleted()] == [run_id]
    assert bench.discard(left_running(bench, monkeypatch))


def test_a_run_that_cannot_be_begun_does_not_stay_queued(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(bench._store.results, "put", full)
        with pytest.raises(StoreError, match="full"):
            bench.run(plan(bench, "needs_cuda", "a"), SHORT)
    run_id = bench.runs()[0].id
    assert bench.load(run_id).status == "interrupted"
    assert followed(bench, run_id)[-1] == RunEnded(status="interrupted", message="the disk is full")
    bench.resume(run_id)
    followed(bench, run_id)
    assert stages(bench.load(run_id)) == {(1, "needs_cuda"): "unavailable", (1, "a"): ""}


@pytest.mark.usefixtures("lock")
@pytest.mark.parametrize("broken", [("results", "drop"), ("runs", "load")])
def test_a_run_that_cannot_be_resumed_does_not_stay_queued(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, broken: tuple[str, str]
) -> None:
    run_id = cancelled(bench, "a")
    part, method = broken
    known = getattr(getattr(bench._store, part), method)

    def once_claimed(*arguments: object) -> object:
        if bench._store.runs.row(run_id).status in LIVING:
            full()
        return known(*arguments)

    with monkeypatch.context() as patched:
        patched.setattr(getattr(bench._store, part), method, once_claimed)
        with pytest.raises(StoreError, match="full"):
            bench.resume(run_id)
    assert (bench.load(run_id).status, bench.progress(run_id).status) == ("interrupted", "interrupted")
    bench.resume(run_id)
    assert bench.load(run_id).status in LIVING


@pytest.mark.usefixtures("lock")
def test_a_plan_whose_sizes_the_op_no_longer_has_says_so_and_stays_as_it_is(bench: Bench) -> None:
    run = bench.load(cancelled(bench, "a"))
    problems = tuple(msgspec.structs.replace(p, sizes={"x": 3}) for p in run.plan.problems)
    of_old = msgspec.structs.replace(run.plan, problems=problems)
    bench.history.add(msgspec.structs.replace(run, id="old", plan=of_old, results=()))
    with pytest.raises(BadField, match=r"sizes: 'x'.*the axes n here; start a new run"):
        bench.resume("old")
    assert bench.load("old").status == "cancelled"


def test_what_goes_on_in_this_process_is_not_taken_for_left_behind(bench: Bench, tmp_path: Path) -> None:
    run_id = bench.run(plan(bench, "until_cancelled"), SHORT)
    until(bench, run_id, is_measuring)
    second = bench_in(tmp_path)
    with pytest.raises(BadField, match="cancel it there"):
        second.cancel(run_id)
    with pytest.raises(BadField, match="wait for its end"):
        second.resume(run_id)
    with pytest.raises(StoreError, match="being measured"):
        second.history.delete(run_id)
    assert bench.load(run_id).status == "running"
    second.close()


def test_a_run_that_ends_while_it_is_deleted_keeps_its_end(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = bench.run(plan(bench, "until_cancelled"), SHORT)
    until(bench, run_id, is_measuring)
    row = bench._store.runs.row

    def and_then_it_ends(asked: str) -> RunRow:
        before = row(asked)
        monkeypatch.undo()
        bench.cancel(asked)
        followed(bench, asked)
        return before

    monkeypatch.setattr(bench._store.runs, "row", and_then_it_ends)
    bench.history.delete(run_id)
    assert bench._store.runs.row(run_id).status == "cancelled"


def test_what_another_process_measured_before_the_claim_is_kept(
    bench: Bench, elsewhere: Bench, lock: DeviceLock, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = cancelled(bench, "a")
    lock.release()
    load = bench.load
    measured: list[tuple[Result, ...]] = []

    def and_then_it_is_measured(asked: str) -> Run:
        before = load(asked)
        elsewhere.resume(asked)
        followed(elsewhere, asked)
        measured.append(elsewhere.load(asked).results)
        return before

    with monkeypatch.context() as patched:
        patched.setattr(bench, "load", and_then_it_is_measured)
        bench.resume(run_id)
    assert followed(bench, run_id)[-1] == RunEnded(status="finished")
    assert [bench.load(run_id).results] == measured  # each measurement of the session has rounds of its own


@pytest.mark.usefixtures("lock")
def test_a_cancel_during_a_resume_is_heard(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = cancelled(bench, "a", "b")
    cancelling = threading.Thread(target=lambda: bench.cancel(run_id))
    drop = bench._store.results.drop

    def and_cancel(*arguments: object) -> None:
        drop(*arguments)  # type: ignore[arg-type]
        cancelling.start()
        cancelling.join(0.1)

    monkeypatch.setattr(bench._store.results, "drop", and_cancel)
    bench.resume(run_id)
    cancelling.join(10)
    assert followed(bench, run_id)[-1] == RunEnded(status="cancelled")
    assert (bench.load(run_id).status, bench.progress(run_id).done) == ("cancelled", 0)
    assert set(stages(bench.load(run_id)).values()) == {"cancelled"}


@pytest.mark.parametrize("variant", ["a", "until_cancelled"])
def test_a_run_that_another_process_resumed_and_ended_is_told_as_it_is(
    bench: Bench, elsewhere: Bench, lock: DeviceLock, variant: str
) -> None:
    run_id = cancelled(bench, "b", variant)
    lock.release()
    elsewhere.resume(run_id)
    if variant == "until_cancelled":
        until(elsewhere, run_id, is_measuring)
        elsewhere.cancel(run_id)
    followed(elsewhere, run_id)
    here, there = bench.progress(run_id), elsewhere.progress(run_id)
    assert (here.status, here.done, here.failed) == (there.status, there.done, there.failed)
    assert [e for _, e in bench.follow(run_id, timeout_s=0)] == [RunEnded(status=there.status)]
    bench.resume(run_id)
    assert bench.progress(run_id).done >= there.done
