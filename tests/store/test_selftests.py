"""Selftests in the store, and databases of earlier versions."""

from __future__ import annotations

import sqlite3
import zlib
from pathlib import Path

import pytest
import sample_inspections as inspections
import sample_runs as samples
import sample_tunings as tunings
import sample_workloads as workloads

from kernelviz.core.selftest import Check, Mark, Selftest, Timeline
from kernelviz.store import Store
from kernelviz.store.database import VERSION


def selftest(name: str, created_at: str) -> Selftest:
    run = samples.run([])
    check = Check(name="a_a", question="?", passed=True, value=1.0, limit=1.0, unit="count", figures={"same": 99.0})
    mark = Mark(kind="call", name="k", start_s=0.0, end_s=1e-6)
    timeline = Timeline(case="add", timer="cupti", marks=(mark,), counted=((0.0, 1e-6),))
    return Selftest(id=name, created_at=created_at, environment=run.environment, checks=(check,), timeline=timeline)


def test_the_newest_selftest_of_a_device_comes_first(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    old, new = selftest("one", "2026-01-01"), selftest("two", "2026-01-02")
    store.selftests.put(new)
    store.selftests.put(old)
    store.selftests.put(old)
    uuid = old.environment.device.uuid
    assert store.selftests.newest(uuid, 5) == (new, old)
    assert store.selftests.newest(uuid, 1) == (new,)
    assert store.selftests.newest("another", 5) == ()
    assert (store.selftests.get("one"), store.selftests.get("three")) == (old, None)
    store.close()


@pytest.mark.parametrize("version", range(1, VERSION))
def test_a_database_of_an_earlier_version_keeps_its_runs_and_gets_what_is_new(tmp_path: Path, version: int) -> None:
    store = Store.open(tmp_path)
    kept = samples.run(id="kept")
    store.runs.create(kept)
    store.close()
    with sqlite3.connect(tmp_path / "kernelviz.db") as connection:
        # As that version left it.
        connection.execute("DROP TABLE workload_runs")
        connection.execute("DROP TABLE workload_results")
        connection.execute("DROP TABLE tunings")
        connection.execute("ALTER TABLE runs DROP COLUMN spent_s")
        connection.execute("ALTER TABLE times DROP COLUMN configuration")
        if version < 5:
            connection.execute("DROP TABLE times")
            connection.execute("DROP INDEX results_by_stage")
            for key, body in connection.execute("SELECT case_key, body FROM results").fetchall():
                connection.execute("UPDATE results SET body = ? WHERE case_key = ?", (zlib.decompress(body), key))
        if version < 4:
            connection.execute("DROP TABLE inspections")
        if version < 3:
            connection.execute("DROP TABLE selftests")
        if version < 2:
            connection.execute("ALTER TABLE runs DROP COLUMN deleted_at")
        connection.execute("UPDATE meta SET value = ? WHERE key = 'version'", (str(version),))
    migrated = Store.open(tmp_path)
    assert migrated.runs.load("kept").results == kept.results
    device = kept.environment.device.uuid
    assert len(migrated.trends.times(device)) == sum(r.timing is not None for r in kept.results) > 0
    assert {row.configuration for row in migrated.trends.times(device)} == {""}
    migrated.runs.set_deleted("kept", "2026-01-02")
    assert migrated.runs.row("kept").deleted_at == "2026-01-02"
    made = selftest("one", "2026-01-01")
    migrated.selftests.put(made)
    assert migrated.selftests.newest(made.environment.device.uuid, 1) == (made,)
    looked = inspections.right()
    migrated.inspections.put(looked)
    migrated.tunings.put(tunings.tuning())
    assert migrated.tunings.find() == (tunings.tuning(),)
    migrated.workloads.create(workloads.run())
    assert migrated.workloads.load("w-sample") == workloads.run()
    migrated.runs.add_device_time("kept", 2.5)
    assert migrated.runs.row("kept").spent_s == 2.5
    assert migrated.inspections.get(looked.environment.device.uuid, looked.case_key) == looked
    migrated.close()
    with sqlite3.connect(tmp_path / "kernelviz.db") as connection:
        assert connection.execute("SELECT value FROM meta WHERE key = 'version'").fetchone() == (str(VERSION),)
        indices = {row[1] for row in connection.execute("PRAGMA index_list(selftests)")}
        assert "selftests_by_device" in indices
        assert "results_by_stage" in {row[1] for row in connection.execute("PRAGMA index_list(results)")}
        assert "inspections_by_time" in {row[1] for row in connection.execute("PRAGMA index_list(inspections)")}
