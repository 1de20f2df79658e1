"""The store: nothing lost by many writers, dead runs seen as interrupted, clear words when it cannot work."""

from __future__ import annotations

import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples
from sqlalchemy import Engine, event

from kernelviz.core.errors import UnknownRun
from kernelviz.core.result import Figure, Result, Timing
from kernelviz.core.run import Roof, Run
from kernelviz.store import Presence, Store, StoreError, home

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path)
    yield made
    made.close()


def run_of(results: list[Result], run_id: str = "r1", status: str = "finished", created: str = "2026-01-01") -> Run:
    made = samples.run(results, id=run_id, status="queued")
    asked = tuple({r.problem.key: r.problem for r in results}.values()) or made.plan.problems
    plan = msgspec.structs.replace(made.plan, problems=asked)
    return msgspec.structs.replace(made, plan=plan, status=status, created_at=created)


def results_of(count: int) -> list[Result]:
    base = samples.run([]).plan.problems[0]
    problems = [msgspec.structs.replace(base, sizes={**base.sizes, "n": 1024 + i}) for i in range(count)]
    return [samples.timed(p, "torch_eager", 0.5) for p in problems]


def test_a_run_comes_back_as_it_was(store: Store) -> None:
    run = run_of(results_of(3))
    store.runs.create(run, owner="ann")
    assert store.runs.load("r1") == run
    row = store.runs.row("r1")
    assert (row.done, row.failed, row.owner, row.op) == (3, 0, "ann", run.plan.op)


def test_results_keep_their_places_and_a_later_one_replaces(store: Store) -> None:
    results = results_of(3)
    store.runs.create(run_of([]))
    store.results.put("r1", [(2, results[2]), (0, results[0])])
    failed = samples.failed(results[1].problem, "torch_eager", "crash", "boom")
    store.results.put("r1", [(1, failed)])
    assert store.runs.load("r1").results == (results[0], failed, results[2])
    assert store.runs.row("r1").failed == 1
    newest = store.results.after("r1", 0)[-1][0]
    store.results.put("r1", [(1, results[1])])
    assert store.runs.load("r1").results == tuple(results)
    assert [r for _, r in store.results.after("r1", newest)] == [results[1]]
    store.results.drop("r1", [results[0].case.key])
    assert store.runs.load("r1").results == (results[1], results[2])


def test_a_run_is_read_in_one_transaction(store: Store, tmp_path: Path) -> None:
    """What another process writes between the header and the results of a run is in neither of them."""
    results = results_of(2)
    store.runs.create(run_of(results[:1]))
    other = Store.open(tmp_path)
    written: list[str] = []

    def write(connection: object, cursor: object, statement: str, *_: object) -> None:
        if statement.startswith("SELECT results.case_key, results.body") and not written:
            written.append(statement)
            other.runs.set_title_or_note("r1", title="new")
            other.results.put("r1", [(1, results[1])])

    before = store.runs.row("r1").title
    event.listen(Engine, "before_cursor_execute", write)
    try:
        loaded = store.runs.load("r1")
    finally:
        event.remove(Engine, "before_cursor_execute", write)
        other.close()
    assert written
    assert (loaded.title, loaded.results) == (before, tuple(results[:1]))
    assert (store.runs.load("r1").title, store.runs.load("r1").results) == ("new", tuple(results))


def test_results_of_chosen_cases(store: Store) -> None:
    first = results_of(1)[0]
    problems = [msgspec.structs.replace(first.problem, sizes={**first.problem.sizes, "n": n}) for n in range(1200)]
    results = [samples.failed(p, "torch_eager", "crash", "") for p in problems]
    store.runs.create(run_of(results))
    keys = [r.case.key for r in results]
    assert store.results.of_cases("r1", [*keys, "another"]) == dict(zip(keys, results, strict=True))
    assert store.results.of_cases("r1", []) == {}
    store.results.drop("r1", keys[:1100])
    assert store.runs.load("r1").results == tuple(results[1100:])


def test_no_revision_is_given_twice(store: Store) -> None:
    """A follower that has seen the newest result learns of what is measured instead of it, and so does who keeps the run."""
    results = results_of(3)
    store.runs.create(run_of(results))
    seen = store.results.newest_revision("r1")
    assert store.runs.load("r1").results == tuple(results)
    again = samples.timed(results[2].problem, "torch_eager", 0.7)
    store.results.drop("r1", [results[2].case.key])
    assert store.results.newest_revision("r1") == seen
    store.results.put("r1", [(2, again)])
    assert [r for _, r in store.results.after("r1", seen)] == [again]
    assert store.runs.load("r1").results == (*results[:2], again)


def test_what_is_not_finite_is_not_stored(store: Store) -> None:
    timing = Timing(device_cold_s=Figure(estimate=float("nan")), device_warm_s=Figure(estimate=1.0, high=float("inf")))
    store.runs.create(run_of([msgspec.structs.replace(results_of(1)[0], outcome=timing)]))
    assert store.runs.load("r1").results[0].outcome == Timing(device_warm_s=Figure(estimate=1.0))


def test_unknown_runs_are_named(store: Store) -> None:
    for ask in (store.runs.load, store.runs.row, store.runs.claim):
        with pytest.raises(UnknownRun, match="'r9'"):
            ask("r9")
    with pytest.raises(UnknownRun):
        store.results.put("r9", [(0, results_of(1)[0])])
    with pytest.raises(UnknownRun):
        store.runs.set_title_or_note("r9", title="x")


def test_words_and_environment_can_be_completed(store: Store) -> None:
    run = run_of([])
    store.runs.create(run)
    store.runs.set_title_or_note("r1", title="new", note="why")
    environment = msgspec.structs.replace(run.environment, tracer="cupti")
    store.runs.set_environment("r1", environment)
    found = store.runs.load("r1")
    assert (found.title, found.note, found.environment) == ("new", "why", environment)


def test_newest_runs_come_first(store: Store) -> None:
    for day in (2, 1, 3):
        store.runs.create(run_of([], run_id=f"r{day}", created=f"2026-01-0{day}"))
    assert [row.id for row in store.runs.rows(2)] == ["r3", "r2"]


def test_the_newest_roof_of_each_kind_wins(store: Store) -> None:
    for rate, when in ((1e11, "2026-01-01"), (2e11, "2026-01-02")):
        store.roofs.put("gpu", Roof(name="copy", bandwidth_bytes_per_s=rate, measured_at=when))
    store.roofs.put("gpu", Roof(name="matmul", precision="fp32", rate_flop_per_s=1e12, measured_at="2026-01-01"))
    store.roofs.put("gpu", Roof(name="matmul", precision="bf16", rate_flop_per_s=2e12, measured_at="2026-01-01"))
    found = store.roofs.newest("gpu")
    assert [(r.name, r.precision) for r in found] == [("copy", None), ("matmul", "fp32"), ("matmul", "bf16")]
    assert found[0].bandwidth_bytes_per_s == 2e11
    assert store.roofs.newest("another") == ()


def test_a_run_of_a_dead_process_is_interrupted_and_can_be_claimed(store: Store, tmp_path: Path) -> None:
    code = (
        "import sys, msgspec; from pathlib import Path\n"
        "from kernelviz.store import Store; from kernelviz.formats import decode\n"
        "Store.open(Path(sys.argv[1])).runs.create(decode(sys.stdin.buffer.read()))\n"
        "sys.stdout.write('stored\\n'); sys.stdout.flush(); sys.stdin.close(); import time; time.sleep(60)\n"
    )
    from kernelviz.formats import encode

    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert other.stdin is not None
    assert other.stdout is not None
    with other.stdin, other.stdout:
        other.stdin.write(encode(run_of(results_of(2), status="running")))
        other.stdin.close()
        assert other.stdout.readline() == b"stored\n"
        assert store.runs.row("r1").status == "running"
        assert store.runs.interrupt_dead() == []
        assert not store.runs.claim("r1")
        other.kill()
        other.wait()
    assert store.runs.row("r1").status == "interrupted"
    assert len(store.runs.load("r1").results) == 2
    assert store.runs.interrupt_dead() == ["r1"]
    assert store.runs.claim("r1")
    assert store.runs.row("r1").status == "queued"
    assert store.runs.row("r1").presence.pid == os.getpid()
    assert not store.runs.claim("r1")


def test_presence_tells_processes_apart() -> None:
    own = Presence.own()
    assert own.alive()
    assert not msgspec.structs.replace(own, started_s=own.started_s - 100).alive()
    assert not msgspec.structs.replace(own, boot_id="an earlier boot").alive()
    assert msgspec.structs.replace(own, host="elsewhere", pid=1, started_s=0).alive()


WRITER = """
import sys
from pathlib import Path
import msgspec
from kernelviz.core.result import Result
from kernelviz.store import Store
store = Store.open(Path(sys.argv[1]))
results = msgspec.json.decode(sys.stdin.buffer.read(), type=list[Result])
for i, result in enumerate(results):
    store.results.put("r1", [(1000 + i, result)])
"""


def test_threads_and_another_process_write_at_once_and_nothing_is_lost(store: Store, tmp_path: Path) -> None:
    """Each result is a transaction of its own; "database is locked" would be raised in a thread or the process."""
    results = results_of(160)
    store.runs.create(run_of([]))
    other = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], cwd=ROOT, stdin=subprocess.PIPE)
    errors: list[BaseException] = []

    def write(first: int) -> None:
        try:
            for i in range(first, 120, 4):
                store.results.put("r1", [(i, results[i])])
                store.runs.set_status("r1", "running")
                store.runs.rows(5)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=write, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    other.communicate(msgspec.json.encode(results[120:]))
    for thread in threads:
        thread.join()
    assert not errors
    assert other.returncode == 0
    assert list(store.runs.load("r1").results) == results
    revisions = [revision for revision, _ in store.results.after("r1", 0)]
    assert revisions == list(range(1, 161))


def test_many_open_the_same_new_database_at_once(tmp_path: Path) -> None:
    stores: list[Store] = []
    errors: list[BaseException] = []

    def opened() -> None:
        try:
            stores.append(Store.open(tmp_path))
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=opened) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
    for made in stores:
        made.close()


def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    Store.open(tmp_path).close()
    with sqlite3.connect(tmp_path / "kernelviz.db") as connection:
        connection.execute("UPDATE meta SET value = '999'")
    with pytest.raises(StoreError, match=r"newer kernelviz.*999"):
        Store.open(tmp_path)


def test_a_file_that_is_no_database_is_named(tmp_path: Path) -> None:
    (tmp_path / "kernelviz.db").write_bytes(b"something else entirely" * 100)
    with pytest.raises(StoreError, match=r"kernelviz\.db.*move it away"):
        Store.open(tmp_path)


def test_a_database_that_became_read_only_says_so(store: Store) -> None:
    store.runs.create(run_of([]))
    with store._database._engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA query_only=1")  # the same answer as for a read-only file, also for root
    with pytest.raises(StoreError, match="read-only"):
        store.runs.set_status("r1", "cancelled")
    assert store.runs.row("r1").status == "finished"


def test_a_full_disk_says_so_and_keeps_what_is_stored(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.runs.create(run_of([]))
    with store._database._engine.connect() as connection:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count={pages}")
    with pytest.raises(StoreError, match="disk is full"):
        store.results.put("r1", list(enumerate(results_of(200))))
    assert store.runs.row("r1").done == 0
    store.close()


def test_where_runs_live(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNELVIZ_HOME", str(tmp_path / "deep" / "home"))
    monkeypatch.delenv("KERNELVIZ_DATABASE_URL", raising=False)
    assert home() == tmp_path / "deep" / "home"
    Store.open().close()
    assert (tmp_path / "deep" / "home" / "kernelviz.db").is_file()
    monkeypatch.setenv("KERNELVIZ_DATABASE_URL", f"sqlite:///{tmp_path / 'other.db'}")
    Store.open().close()
    assert (tmp_path / "other.db").is_file()
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot be created"):
        Store.open(tmp_path / "file" / "home")
