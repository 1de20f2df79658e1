"""Runs of workloads in the store: results, damage, ownership, deleted runs."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest
import sample_workloads as samples

from kernelviz.core import UnknownRun
from kernelviz.core.reasons import StoredResultDamaged
from kernelviz.store import Store, StoreError
from kernelviz.text.workload_insight import describe_insight


def test_a_damaged_result_costs_its_case_and_is_no_refusal(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    whole = samples.run()
    store.workloads.create(whole)
    with sqlite3.connect(tmp_path / "kernelviz.db") as connection:
        connection.execute("UPDATE workload_results SET body = X'00' WHERE position = 1")
    read = store.workloads.load(whole.id)
    (damaged,) = (result for result in read.results if result.failure is not None)
    assert damaged.case == whole.plan.cases[1]
    assert damaged.failure is not None
    assert damaged.failure.reasons == (StoredResultDamaged(),)
    assert damaged.failed
    assert str(describe_insight(read)).endswith("1 case failed.")
    assert [r for r in read.results if r is not damaged] == [r for r in whole.results if r.case != damaged.case]
    store.close()


def test_a_result_replaces_that_of_its_case_in_the_order_of_the_plan(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    whole, failing = samples.run(), samples.run(failing=("fast",))
    store.workloads.create(samples.run(missing=("slow", "fast")))
    for position in reversed(range(len(whole.results))):
        store.workloads.put(whole.id, position, failing.results[position])
        store.workloads.put(whole.id, position, whole.results[position])
    assert store.workloads.load(whole.id).results == whole.results
    assert (store.workloads.row(whole.id).done, store.workloads.row(whole.id).failed) == (4, 0)
    store.workloads.drop(whole.id, [whole.plan.cases[0].key])
    assert store.workloads.row(whole.id).done == 3
    with pytest.raises(
        UnknownRun, match=r"'w-none' here.* `kernelviz workloads runs` .* `kernelviz workloads export RUN -o FILE`"
    ):
        store.workloads.put("w-none", 0, whole.results[0])
    store.close()


def test_a_run_under_way_belongs_to_one_process_and_cannot_be_deleted(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.workloads.create(samples.run(status="running"), samples.run(id="w-ended", status="cancelled"))
    assert not store.workloads.claim("w-sample")
    assert store.workloads.interrupt_dead() == [], "this process lives"
    with pytest.raises(StoreError, match="cancel it"):
        store.workloads.set_deleted("w-sample", "2026-01-01")
    assert store.workloads.claim("w-ended")
    store.workloads.set_status("w-ended", "cancelled")
    with sqlite3.connect(tmp_path / "kernelviz.db") as connection:
        connection.execute("UPDATE workload_runs SET pid_started_s = pid_started_s - 60 WHERE id = 'w-sample'")
    assert store.workloads.load("w-sample").status == "interrupted"
    assert store.workloads.interrupt_dead() == ["w-sample"]
    store.workloads.set_deleted("w-ended", "2026-01-01")
    assert store.workloads.purge("2026-01-01") == []
    assert store.workloads.purge("2026-01-02") == ["w-ended"]
    with sqlite3.connect(tmp_path / "kernelviz.db") as connection:
        (left,) = connection.execute("SELECT count(*) FROM workload_results WHERE run_id = 'w-ended'").fetchone()
    assert left == 0
    store.close()
