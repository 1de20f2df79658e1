"""docs/gpu-report.json: what passed on a GPU, with a digest of the source that passed."""

from __future__ import annotations

import datetime
import fcntl
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

SCHEMA = "kernelviz-gpu-report/1"
REMEDY = (
    "run `python -m pytest tests/gpu --part kernels` on a machine with an NVIDIA GPU, then "
    "`python tests/gpu/join_reports.py gpu-reports/kernels.json`, and commit docs/gpu-report.json"
)


def path() -> Path:
    """The committed report, or the file that KERNELVIZ_GPU_REPORT names."""
    return Path(os.environ.get("KERNELVIZ_GPU_REPORT") or Path(__file__).parents[2] / "docs" / "gpu-report.json")


def all_paths() -> list[Path]:
    """`path`, and the reports of other cards beside it."""
    first = path()
    return [first, *sorted(file for file in first.parent.glob("gpu-report-*.json") if file != first)]


Key = tuple[str, str, str, str, str]


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """One variant in one precision. `worst_of_bound`: the largest |error| / allowed |error| over all its cases."""

    op: str
    variant: str
    dtype: str
    compute: str | None
    passed: bool
    worst_of_bound: float | None
    cases: int
    source_digest: str
    device: str
    direction: str = "forward"
    failures: list[str] = field(default_factory=list)

    @property
    def key(self) -> Key:
        return (self.op, self.variant, self.dtype, self.compute or "", self.direction)


def read(file: Path) -> dict[Key, Entry]:
    """Entries by op, variant, dtype, compute precision and direction; none where there is no file."""
    if not file.is_file():
        return {}
    known = {one.name for one in fields(Entry)}
    found = ({key: value for key, value in e.items() if key in known} for e in json.loads(file.read_text())["kernels"])
    return {entry.key: entry for entry in (Entry(**e) for e in found)}


def write(file: Path, entries: Iterable[Entry], environment: dict[str, Any]) -> None:
    """Put the entries into the file, in place of older ones of the same key; others stay with their own device and digest."""
    file.parent.mkdir(parents=True, exist_ok=True)
    # Several processes may have parts of the tests.
    with (Path(tempfile.gettempdir()) / "kernelviz-gpu-report.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        merged = read(file) | {e.key: e for e in entries}
        document = {
            "schema": SCHEMA,
            "written_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            **environment,
            "kernels": [asdict(merged[key]) for key in sorted(merged)],
        }
        file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def replace_all(file: Path, entries: Iterable[Entry]) -> None:
    """Leave only these entries in the report; what it says of the machine and the time stays."""
    document = json.loads(file.read_text())
    document["kernels"] = [asdict(entry) for entry in sorted(entries, key=lambda e: e.key)]
    file.write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")
