"""Tunings in the store: one for each device, variant and problem, the newest."""

from __future__ import annotations

from pathlib import Path

import msgspec
import sample_runs as samples
import sample_tunings as tunings

from kernelviz.store import Store


def test_the_newest_of_the_same_replaces_and_others_stay(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    first = tunings.tuning()
    others = [
        tunings.tuning(device_uuid="GPU-2"),
        tunings.tuning(variant="cuda_tuned"),
        tunings.tuning(problem=msgspec.structs.replace(tunings.ADD, dtype="bf16")),
        tunings.tuning(problem=msgspec.structs.replace(tunings.ADD, direction="backward")),
    ]
    for made in (first, *others):
        store.tunings.put(made)
    assert len(store.tunings.find()) == 5
    newer = tunings.tuning(block=64, created_at="2026-11-22T10:00:00+00:00")
    store.tunings.put(newer)
    assert newer in store.tunings.find()
    assert first not in store.tunings.find()
    assert len(store.tunings.find()) == 5
    assert len(store.tunings.find(samples.H200.uuid, "add")) == 4
    assert store.tunings.find("GPU-2", "mul") == ()
    assert not store.tunings.put(first, only_newer=True), "one from elsewhere replaces only what is older"
    assert newer in store.tunings.find()
    store.tunings.drop([newer])
    assert len(store.tunings.find()) == 4
    assert store.tunings.put(first, only_newer=True)
    store.close()


def test_data_are_no_part_of_what_a_tuning_is_for(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.tunings.put(tunings.tuning())
    store.tunings.put(tunings.tuning(problem=msgspec.structs.replace(tunings.ADD, data="zeros")))
    assert len(store.tunings.find()) == 1
    store.close()


def test_a_tuning_leaves_no_trends_and_says_what_it_took(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.runs.create(tunings.run())
    usual = samples.run(id="usual")
    store.runs.create(usual)
    device = usual.environment.device.uuid
    assert {row.run_id for row in store.trends.times(device)} == {"usual"}
    assert store.runs.row("tuning-1").spent_s == 0.0
    store.runs.add_device_time("tuning-1", 1.5)
    store.runs.add_device_time("tuning-1", 2.0)
    assert store.runs.row("tuning-1").spent_s == 3.5
    store.close()
