"""The table of times that trends are made of, beside the results."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import sample_runs as samples

from kernelviz.bench.summaries import RunSummary
from kernelviz.core.errors import UnknownRun
from kernelviz.core.reasons import Stage
from kernelviz.core.run import Run
from kernelviz.formats import shipped_runs
from kernelviz.store import Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    made = Store.open(tmp_path)
    yield made
    made.close()


def kept(store: Store, number: int, run: Run | None = None) -> Run:
    made = run or samples.run()
    made = msgspec.structs.replace(made, id=f"run-{number}", created_at=f"2026-11-{number:02}T00:00:00+00:00")
    store.runs.create(made)
    return made


def test_times_are_case_by_case_in_the_order_of_time(store: Store) -> None:
    runs = [kept(store, number) for number in (3, 1, 2)]
    device = runs[0].environment.device.uuid
    found = store.trends.times(device)
    assert len(found) == 3 * len(runs[0].results)
    keys = list(dict.fromkeys(row.case_key for row in found))
    assert set(keys) == {r.case.key for r in runs[0].results}
    for key in keys:
        assert [row.run_id for row in found if row.case_key == key] == ["run-1", "run-2", "run-3"]
    result = runs[0].results[0]
    (row, *_) = store.trends.times(device, case_key=result.case.key)
    assert (row.problem, row.variant) == (result.problem, result.variant)
    assert result.timing is not None
    cold = result.timing.device_cold_s
    assert cold is not None
    assert row.cold_s == (cold.estimate, cold.low, cold.high)
    assert row.warm_s is None
    assert row.setup.startswith("burst cupti")
    assert store.trends.times(device, op="none") == []
    assert store.trends.times("another device") == []


def test_only_correct_times_count_and_the_newest_result_of_a_case(store: Store) -> None:
    run = kept(store, 1, samples.mixed())
    device = run.environment.device.uuid
    correct = {r.case.key for r in run.results if r.timing is not None}
    assert {row.case_key for row in store.trends.times(device)} == correct
    gone = next(r for r in run.results if r.timing is not None)
    store.results.put("run-1", [(0, samples.failed(gone.problem, gone.variant, "wrong"))])
    assert {row.case_key for row in store.trends.times(device)} == correct - {gone.case.key}
    store.results.put("run-1", [(0, gone)])
    assert {row.case_key for row in store.trends.times(device)} == correct
    store.results.drop("run-1", [gone.case.key])
    assert {row.case_key for row in store.trends.times(device)} == correct - {gone.case.key}


def test_deleted_runs_have_no_times_and_restored_ones_have(store: Store) -> None:
    run = kept(store, 1)
    device = run.environment.device.uuid
    store.runs.set_deleted("run-1", "2026-12-01")
    assert store.trends.times(device) == []
    store.runs.set_deleted("run-1", None)
    assert len(store.trends.times(device)) == len(run.results)
    store.runs.remove("run-1")
    assert store.trends.times(device) == []


def test_cancelled_cases_are_neither_done_nor_failed(store: Store) -> None:
    results = samples.run().results[:5]
    cancelled = [samples.failed(r.problem, r.variant, "cancelled") for r in results[2:]]
    wrong = samples.failed(results[1].problem, results[1].variant, "wrong")
    kept(store, 1, samples.run([results[0], wrong, *cancelled]))
    row = store.runs.row("run-1")
    assert (row.done, row.failed, row.unavailable, row.cancelled) == (2, 1, 0, 3)


def test_a_size_that_a_variant_does_not_take_is_no_failed_case(store: Store) -> None:
    results = samples.run().results[:3]
    stages: tuple[Stage, ...] = ("wrong", "unavailable")
    without = [samples.failed(r.problem, r.variant, stage) for r, stage in zip(results[1:], stages, strict=True)]
    run = kept(store, 1, samples.run([results[0], *without]))
    row = store.runs.row("run-1")
    assert (row.done, row.failed, row.unavailable, row.cancelled) == (3, 2, 1, 0)
    line = shipped_runs.line_of(run)
    assert (line.failed, line.unavailable) == (2, 1)
    summary = RunSummary(**msgspec.structs.asdict(line))
    assert (summary.broken, summary.case_counts.split(", ")[-2:]) == (1, ["1 failed", "1 not available"])


def test_an_ended_run_is_read_once_until_something_of_it_changes(store: Store) -> None:
    run = kept(store, 1)
    first = store.runs.load("run-1")
    assert store.runs.load("run-1") is first
    store.runs.set_title_or_note("run-1", title="renamed")
    renamed = store.runs.load("run-1")
    assert renamed.title == "renamed"
    gone = run.results[0]
    failed = samples.failed(gone.problem, gone.variant, "wrong")
    store.results.put("run-1", [(0, failed)])
    assert store.runs.load("run-1").results[0].outcome == failed.outcome
    store.results.drop("run-1", [gone.case.key])
    assert len(store.runs.load("run-1").results) == len(run.results) - 1
    store.runs.remove("run-1")
    with pytest.raises(UnknownRun):
        store.runs.load("run-1")


def test_another_process_s_writes_are_seen(store: Store, tmp_path: Path) -> None:
    run = kept(store, 1)
    assert store.runs.load("run-1").results[0] == run.results[0]
    other = Store.open(tmp_path)
    failed = samples.failed(run.results[0].problem, run.results[0].variant, "wrong")
    other.results.put("run-1", [(0, failed)])
    other.close()
    assert store.runs.load("run-1").results[0].outcome == failed.outcome
