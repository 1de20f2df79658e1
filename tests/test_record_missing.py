"""tests/gpu/record_missing.py: what the gallery lacks of a card, and the files that come back from a GPU."""

from __future__ import annotations

import io
import tarfile
from pathlib import Path

import pytest
import record_missing

from kernelviz.bench.recording import OpPass
from kernelviz.formats import shipped_runs


def line(title: str, day: str, device: str = "NVIDIA H200", id: str = "") -> shipped_runs.Line:
    created_at = f"{day}T10:00:00+00:00"
    return shipped_runs.Line(
        id=id or title,
        title=title,
        op="",
        device=device,
        created_at=created_at,
        status="finished",
        cases=1,
        done=1,
        failed=0,
    )


def test_a_pass_is_lacking_without_a_run_of_all_variants_on_the_card_since_that_day() -> None:
    every = [OpPass("add"), OpPass("rope"), OpPass("rope", "backward"), OpPass("sum"), OpPass("topk")]
    lines = [
        line("add, all variants, on NVIDIA H200", "2026-11-23"),
        line("rope, all variants, on NVIDIA H200", "2026-11-30"),
        line("rope backward, all variants, on NVIDIA H100", "2026-11-30", "NVIDIA H100"),
        line("sum fp32, 6 sizes, NVIDIA H200", "2026-12-01"),
    ]
    left = record_missing.lacking(every, lines, "NVIDIA H200", "2026-11-30", first=["topk"])
    assert list(map(str, left)) == ["topk", "add", "rope backward", "sum"]
    assert OpPass("add") not in record_missing.lacking(every, lines, "NVIDIA H200", "2026-11-23")


def test_a_pass_whose_name_a_run_with_another_purpose_has_is_named() -> None:
    every = [OpPass("add"), OpPass("rope"), OpPass("rope", "backward")]
    lines = [
        line("add, all variants, on NVIDIA H200", "2026-11-23", id="h200-add"),
        line("rope bf16, 6 sizes, NVIDIA H200", "2026-11-27", id="h200-rope-backward"),
        line("rope bf16, 6 sizes, NVIDIA H100", "2026-11-27", "NVIDIA H100", id="h100-rope"),
    ]
    assert record_missing.named_otherwise(every, lines, "NVIDIA H200") == [OpPass("rope", "backward")]


def test_runs_come_back_in_files_of_a_size_that_may_be_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(record_missing, "PART_BYTES", 5000)
    files = [tmp_path / f"{name}.kvz" for name in "abc"]
    for number, file in enumerate(files):
        file.write_bytes(bytes([number]) * 4000)
    record_missing.pack([files[0]] * 9, tmp_path)
    record_missing.pack(files, tmp_path)
    parts = sorted(tmp_path.glob("recorded.tar.*"))
    assert len(parts) > 2
    assert max(part.stat().st_size for part in parts) <= 5000
    with tarfile.open(fileobj=io.BytesIO(b"".join(part.read_bytes() for part in parts))) as archive:
        assert [(member.name, member.size) for member in archive] == [(file.name, 4000) for file in files]
