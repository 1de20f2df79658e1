"""Tests of the part `kernels` that need no second run: what passed on this card, with these sources and these versions.

A report of a card (docs/gpu-report*.json) is a record. A variant in one format is on record if its entry has the digest that its
source has now, and card, driver and versions are those of this machine. One test of SAMPLE is run all the same, others at each
commit; `--all` runs every test. Imports no torch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import gpu_report
import pytest
from cases import Way, ways

from kernelviz.ops import Op, Variant, op_named

SAMPLE = 40
SAME = ("device", "compute_capability", "driver", "versions", "cuda")
"""What must be the same on this machine."""
SOFTMAX = "test_softmax_of_special_rows"


@dataclass(frozen=True, slots=True)
class Record:
    """What passed on a card: digests by op, variant, format, compute precision and direction, and the names of tests."""

    digests: Mapping[gpu_report.Key, str] = field(default_factory=dict)
    tests: frozenset[str] = frozenset()

    @classmethod
    def of(cls, environment: Mapping[str, Any], files: Sequence[Path]) -> Record:
        """That of the first report of this card, driver and these versions; an empty one if there is none."""
        for file in files:
            if not file.is_file():
                continue
            report = json.loads(file.read_text())
            if any(report.get(name) != environment.get(name) for name in SAME):
                continue
            entries = gpu_report.read(file)
            told = report.get("parts", {}).get("kernels", {}).get("tests", {})
            return cls(
                {key: e.source_digest for key, e in entries.items() if e.passed and e.device == environment["device"]},
                frozenset(name for name, one in told.items() if one["outcome"] == "passed"),
            )
        return cls()

    def has(self, op: Op, variant: Variant, way: Way) -> bool:
        """Whether the variant passed in this format with the source that it has now."""
        key = (op.name, variant.name, way.dtype, way.compute or "", way.direction)
        return key in self.digests and self.digests[key] == way.variant(op, variant).source_digest()


def is_on_record(record: Record, name: str, parameters: Mapping[str, Any]) -> bool:
    """Whether a test of the part passed with what it would test now. A test without a variant is not on record."""
    variant = parameters.get("variant")
    op = op_named("softmax") if SOFTMAX in name else parameters.get("op")
    if op is None or variant is None or name not in record.tests:
        return False
    way = parameters.get("way")
    return all(record.has(op, variant, one) for one in ([way] if way else ways(op, variant)))


Item = TypeVar("Item", bound=pytest.Item)


def to_run(items: Sequence[Item], record: Record, seed: str | None) -> list[Item]:
    """The tests that are not on record, and one of SAMPLE of the others: which, depends on `seed`, the commit."""

    def again(item: Item) -> bool:
        return int(hashlib.sha256(f"{seed} {item.nodeid}".encode()).hexdigest()[:8], 16) % SAMPLE == 0

    def parameters(item: Item) -> Mapping[str, Any]:
        return item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}

    return [item for item in items if again(item) or not is_on_record(record, item.nodeid, parameters(item))]
