"""`kernelviz trends` over a store of nightly runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from sample_nights import nights
from typer.testing import CliRunner

import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.cli.commands import app
from kernelviz.hardware.discovery import discover
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    cpu = next(d for d in discover() if d.kind == "cpu")
    store = Store.open(tmp_path)
    for run in nights(device=cpu):
        store.create(run)
    made = Bench(store, (cpu,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def test_all_cases_and_only_what_is_slower(bench: Bench) -> None:
    everything = CliRunner().invoke(app, ["trends", "--device", "cpu"])
    assert everything.exit_code == 0
    assert "torch_eager" in everything.stdout
    slower = CliRunner().invoke(app, ["trends", "--regressions", "--device", "cpu", "--json"])
    assert slower.exit_code == 3
    (case,) = json.loads(slower.stdout)
    assert case["variant"] == "triton_persistent"
    assert case["regression"]["run"] == "night-08"
    assert case["regression"]["ratio"] == pytest.approx(1.04, rel=0.005)
    assert len(case["points"]) == 14


def test_nothing_slower_is_no_failure(bench: Bench) -> None:
    result = CliRunner().invoke(app, ["trends", "--regressions", "--variant", "torch_eager", "--device", "cpu"])
    assert result.exit_code == 0
    assert "nothing is slower" in result.stderr


def test_unknown_words_are_bad_usage(bench: Bench) -> None:
    assert CliRunner().invoke(app, ["trends", "--device", "cuda:9"]).exit_code != 0
    assert CliRunner().invoke(app, ["trends", "--l2", "hot", "--device", "cpu"]).exit_code != 0
