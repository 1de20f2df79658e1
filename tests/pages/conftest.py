"""What the tests of pages share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sample_runs as samples

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    """The use cases over an empty store, on this machine's CPU, as the pages get them."""
    made = Bench(Store.open(tmp_path), (samples.CPU,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    yield made
    made.close()
