"""What the tests of commands share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The use cases over an empty store, on this machine's CPU, as the commands get them."""
    made = Bench(Store.open(tmp_path / "store"), (samples.CPU,))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()
