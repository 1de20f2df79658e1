"""Inspections, selftests, tunings and roofs of a backup that have impossible values are refused, because no page could draw
them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import mutations
import pytest

from kernelviz.bench.history import History
from kernelviz.core.errors import DocumentError
from kernelviz.store import Store

CELLS = "errors", 0, "map"
IMPOSSIBLE: dict[str, tuple[str, tuple[Any, ...], Any]] = {
    "a map with more cells than rows and columns": ("inspection", (*CELLS, "rows"), 1),
    "a map of no column": ("inspection", (*CELLS, "columns"), 0),
    "a map of many rows": ("inspection", (*CELLS, "rows"), 10**9),
    "a block of nothing": ("inspection", (*CELLS, "block", 0), 0),
    "lists of different lengths": ("inspection", (*CELLS, "wrong"), [1]),
    "a map that cannot be flat": ("inspection", (*CELLS, "wraps"), False),
    "axes of another output": ("inspection", ("errors", 0, "axes"), []),
    "a negative size": ("inspection", ("errors", 0, "shape", 0), -1),
    "more wrong elements than there are": ("inspection", ("errors", 0, "shape", 0), 1),
    "bins that are missing": ("inspection", ("errors", 0, "counts", "octaves"), [1]),
    "a corner outside the output": ("inspection", ("errors", 0, "first_wrong"), [0, 0, 0]),
    "memory below nothing": ("inspection", ("memory", 0, "allocated_bytes"), -1),
    "a moment twice": ("inspection", ("memory", 1, "moment"), ("memory", 0, "moment")),
    "no tensor": ("inspection", ("tensors",), []),
    "a histogram without bins": ("inspection", ("tensors", 0, "histogram"), {"low": 0.0, "high": 1.0, "counts": []}),
    "a histogram of infinite width": ("inspection", ("tensors", 0, "histogram"), {"low": -1e308, "high": 1e308, "counts": [1]}),
    "two tensors of one name": ("inspection", ("tensors", 1, "name"), ("tensors", 0, "name")),
    "a number of seeds that no page can list": ("inspection", ("seeds",), 10**12),
    "an inspection before the first year": ("inspection", ("created_at",), "0001-01-01T00:00:00+23:00"),
    "a selftest after the last year": ("selftest", ("created_at",), "9999-12-31T23:59:59-12:00"),
    "a mark that ends before it starts": ("selftest", ("timeline", "marks", 0, "end_s"), -1.0),
    "a mark of a thousand years": ("selftest", ("timeline", "marks", 0, "end_s"), 1e300),
    "a size of a tuning that cannot be": ("tuning", ("problem", "sizes", "n"), 0),
    "a time that cannot be": ("tuning", ("time_s", "estimate"), -1.0),
    "a configuration that fits into no integer": ("tuning", ("configuration", "block"), 10**30),
    "a tuning before the first year": ("tuning", ("created_at",), "0001-01-01T00:00:00+23:00"),
    "a roof without its rate": ("roof", ("bandwidth_bytes_per_s",), None),
    "a roof of a negative rate": ("roof", ("bandwidth_bytes_per_s",), -1.0),
    "a roof before the first year": ("roof", ("measured_at",), "0001-01-01T00:00:00+23:00"),
}  # fmt: skip
"""The kind of a line, the path of a value in it, and the value; as a tuple, the path of the value that it gets."""


def node_of(node: Any, path: Sequence[Any]) -> Any:
    for key in path:
        node = node[key]
    return node


@pytest.fixture
def history(tmp_path: Path) -> Iterator[History]:
    store = Store.open(tmp_path / "store")
    yield History(store)
    store.close()


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_value_is_refused_with_its_line(history: History, tmp_path: Path, name: str) -> None:
    kind, (*path, last), value = IMPOSSIBLE[name]
    lines = mutations.backups()[0].splitlines()[:-1]
    at = next(i for i, line in enumerate(lines) if json.loads(line).get("kind") == kind)
    changed = json.loads(lines[at])
    node = node_of(changed[kind], path)
    node[last] = node_of(changed[kind], value) if isinstance(value, tuple) else value
    lines[at] = json.dumps(changed).encode()
    (tmp_path / "backup").write_bytes(mutations.sealed_backup(lines))
    with pytest.raises(DocumentError, match=rf"^line {at + 1}: \$\.{kind}\b"):
        history.take_in_backup(tmp_path / "backup")
    assert history.count() == 0


def test_the_backup_without_a_change_is_restored(history: History, tmp_path: Path) -> None:
    (tmp_path / "backup").write_bytes(mutations.backups()[0])
    assert (
        history.take_in_backup(tmp_path / "backup").counts
        == "2 runs, 3 roofs, 1 selftest, 1 inspection, 1 tuning, 0 workloads"
    )
