"""An old backup brings back what is missing, and nothing old in the place of something newer."""

from __future__ import annotations

from pathlib import Path

import msgspec
import sample_inspections as samples

from kernelviz.bench.history import History
from kernelviz.store import Store


def test_a_newer_inspection_stays(tmp_path: Path) -> None:
    made = samples.right()
    old, new = (msgspec.structs.replace(made, created_at=f"{year}-01-01T00:00:00.000+00:00") for year in (2025, 2026))
    there, here = Store.open(tmp_path / "there"), Store.open(tmp_path / "here")
    there.inspections.put(old)
    file = tmp_path / "backup.jsonl"
    History(there).back_up(file)
    uuid = made.environment.device.uuid
    History(here).take_in_backup(file)
    assert here.inspections.get(uuid, made.case_key) == old, "what is missing comes back"
    here.inspections.put(new)
    History(here).take_in_backup(file)
    assert here.inspections.get(uuid, made.case_key) == new
    there.close()
    here.close()
