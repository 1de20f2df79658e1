"""Many runs and many cases: statements of bounded length, and a write lock that is held only for writing."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sample_runs as samples
from sqlalchemy import event

from kernelviz.core.result import Result
from kernelviz.core.run import Run
from kernelviz.store import Store
from kernelviz.store import results as module
from kernelviz.store.result_encoding import packed

MANY = 700


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """One whose statements take 600 values at most, as an old SQLite's take 999."""
    made = Store.open(tmp_path)
    engine = made._database._engine
    engine.dispose()

    @event.listens_for(engine, "connect")
    def connected(connection: Any, _: Any) -> None:
        connection.setlimit(sqlite3.SQLITE_LIMIT_VARIABLE_NUMBER, 600)

    yield made
    made.close()


def run_of(count: int) -> Run:
    made = samples.run([])
    first = made.plan.problems[0]
    problems = tuple(msgspec.structs.replace(first, sizes={**first.sizes, "n": 1 + i}) for i in range(count))
    plan = msgspec.structs.replace(made.plan, problems=problems)
    results = tuple(samples.timed(p, made.plan.baseline, 0.5) for p in problems)
    return msgspec.structs.replace(made, plan=plan, results=results, status="finished")


def test_a_run_of_many_cases_and_their_times(store: Store) -> None:
    run = run_of(MANY)
    store.runs.create(run)
    assert store.runs.load(run.id) == run
    store.results.put(run.id, list(enumerate(run.results)))
    assert len(store.trends.times(run.environment.device.uuid)) == MANY
    assert store.runs.row(run.id).done == MANY


def test_many_runs_are_listed_and_their_machines_told(store: Store) -> None:
    run = run_of(1)
    ids = [f"r{i}" for i in range(MANY)]
    store.runs.create(*(msgspec.structs.replace(run, id=i) for i in ids))
    assert [row.done for row in store.runs.rows(2 * MANY)] == [1] * MANY
    assert store.runs.environments(ids) == dict.fromkeys(ids, run.environment)


def test_of_two_results_of_a_case_the_later_one_is_kept(store: Store) -> None:
    run = run_of(2)
    again = samples.timed(run.plan.problems[0], run.plan.baseline, 0.25)
    store.runs.create(msgspec.structs.replace(run, results=(*run.results, again)))
    assert store.runs.load(run.id).results == (run.results[1], again)
    assert len(store.trends.times(run.environment.device.uuid)) == 2


def test_others_can_write_while_results_are_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Store.open(tmp_path)
    free: list[int] = []

    def watched(result: Result) -> bytes:
        other = sqlite3.connect(tmp_path / "kernelviz.db", timeout=0)
        other.execute("BEGIN IMMEDIATE")  # fails at once where somebody holds the lock
        other.close()
        free.append(1)
        return packed(result)

    monkeypatch.setattr(module, "packed", watched)
    made.runs.create(run_of(3))
    made.close()
    assert len(free) == 3
