"""The selftest on a GPU, through the product's own worker: no check fails."""

from pathlib import Path

import msgspec
import pytest
from figures import record
from parts import part

from kernelviz.text.selftest import describe_check

pytestmark = [part("selftest"), pytest.mark.gpu, pytest.mark.xdist_group("gpu"), pytest.mark.timeout(900)]


def test_every_check_passes_or_cannot_be_made_here(tmp_path: Path) -> None:
    from kernelviz.bench import Bench
    from kernelviz.hardware.discovery import discover
    from kernelviz.store import Store

    bench = Bench(Store.open(tmp_path), discover(), lock_directory=tmp_path)
    try:
        followed = bench.selftest("cuda:0")
        for _ in bench.follow(followed):
            pass
        made = bench.last_selftest("cuda:0")
    finally:
        bench.close()
    assert made is not None
    record("selftest", msgspec.to_builtins(made))
    assert {c.name: str(describe_check(c)) for c in made.failed} == {}
    a_a = next(c for c in made.checks if c.name == "a_a")
    assert a_a.figures["same"] >= a_a.figures["comparisons"] / 2, a_a.figures
    assert made.timeline is not None
    assert len(made.timeline.counted) == 3
    assert sum(c.passed is True for c in made.checks) >= 15
