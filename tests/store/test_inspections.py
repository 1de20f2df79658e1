"""Inspections in the store: the newest of each case and device, and so many at most."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest
import sample_inspections as inspections

from kernelviz.core.problem import Problem
from kernelviz.store import Store, device_records


def test_the_newest_of_a_case_on_a_device_is_kept(tmp_path: Path) -> None:
    store = Store.open(tmp_path)
    old, new = inspections.wrong_tile(), inspections.right()
    uuid = old.environment.device.uuid
    assert store.inspections.get(uuid, old.case_key) is None
    store.inspections.put(old)
    assert store.inspections.get(uuid, old.case_key) == old
    store.inspections.put(new)
    assert store.inspections.get(uuid, old.case_key) == new
    assert store.inspections.get("another", old.case_key) is None
    other = inspections.right(variant="torch_eager")
    assert store.inspections.get(uuid, other.case_key) is None
    store.close()


def test_beyond_so_many_the_oldest_are_dropped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_records, "MOST_INSPECTIONS", 3)
    store = Store.open(tmp_path)
    made = [
        msgspec.structs.replace(
            inspections.right(problem=Problem(op="add", sizes={"n": 8 + i}, dtype="fp32")),
            created_at=f"2026-11-21T12:00:0{i}.000+00:00",
        )
        for i in range(5)
    ]
    for one in made:
        store.inspections.put(one)
    found = [store.inspections.get(one.environment.device.uuid, one.case_key) for one in made]
    assert found == [None, None, *made[2:]]
    store.close()


def test_those_of_one_moment_are_not_dropped_with_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_records, "MOST_INSPECTIONS", 2)
    store = Store.open(tmp_path)
    made = [inspections.right(variant=name) for name in ("a", "b", "c")]
    for one in made:
        store.inspections.put(one)
    assert store.inspections.get(made[2].environment.device.uuid, made[2].case_key) == made[2]
    store.close()
