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
        store.put_tuning(made)
    assert len(store.tunings()) == 5
    newer = tunings.tuning(block=64, created_at="2026-11-22T10:00:00+00:00")
    store.put_tuning(newer)
    assert newer in store.tunings()
    assert first not in store.tunings()
    assert len(store.tunings()) == 5
    assert len(store.tunings(samples.H200.uuid, "add")) == 4
    assert store.tunings("GPU-2", "mul") == ()
    assert not store.add_tuning(first), "one from elsewhere replaces only what is older"
    assert newer in store.tunings()
    store.drop_tunings([newer])
    assert len(store.tunings()) == 4
    assert store.add_tuning(first)
    store.close()


def test_data_are_no_part_of_what_a_tuning_is_for(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.put_tuning(tunings.tuning())
    store.put_tuning(tunings.tuning(problem=msgspec.structs.replace(tunings.ADD, data="zeros")))
    assert len(store.tunings()) == 1
    store.close()


def test_a_tuning_leaves_no_trends_and_says_what_it_took(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    store.create(tunings.run())
    usual = samples.run(id="usual")
    store.create(usual)
    device = usual.environment.device.uuid
    assert {row.run_id for row in store.times(device)} == {"usual"}
    assert store.row("tuning-1").spent_s == 0.0
    store.add_spent("tuning-1", 1.5)
    store.add_spent("tuning-1", 2.0)
    assert store.row("tuning-1").spent_s == 3.5
    store.close()
