"""`kernelviz trends` over a store of nightly runs."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest
from sample_nights import nights

import kernelviz.api
import kernelviz.bench
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.core.errors import UnknownName
from kernelviz.hardware.discovery import discover
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    cpu = next(d for d in discover() if d.kind == "cpu")
    store = Store.open(tmp_path)
    for run in nights(device=cpu):
        store.runs.create(run)
    made = Bench(store, (cpu,))
    monkeypatch.setattr(kernelviz.bench, "current", lambda: made)
    return made


def test_all_cases_and_only_what_is_slower(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trends", "--device", "cpu"]) == 0
    assert "torch_eager" in capsys.readouterr().out
    assert main(["trends", "--regressions", "--device", "cpu", "--json"]) == 3
    (case,) = json.loads(capsys.readouterr().out)
    assert case["variant"] == "triton_persistent"
    assert case["regression"]["run"] == "night-08"
    assert case["regression"]["ratio"] == pytest.approx(1.04, rel=0.005)
    assert len(case["points"]) == 14


def test_nothing_slower_is_no_failure(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trends", "--regressions", "--variant", "torch_eager", "--device", "cpu"]) == 0
    assert "nothing is slower" in capsys.readouterr().err


def test_unknown_words_are_bad_usage(bench: Bench) -> None:
    assert main(["trends", "--device", "cuda:9"]) == 2
    assert main(["trends", "--l2", "hot", "--device", "cpu"]) == 2


def test_a_slip_of_the_keyboard_does_not_pass_for_nothing_slower(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["trends", "rmsnrm", "--regressions", "--device", "cpu"]) == 2
    assert "no op 'rmsnrm'; did you mean 'rmsnorm'?" in capsys.readouterr().err
    for options in ([], ["--regressions"]):
        assert main(["trends", "--variant", "torch_eagr", "--device", "cpu", *options]) == 2
        assert "no measured variant 'torch_eagr' of cpu; did you mean 'torch_eager'?" in capsys.readouterr().err
    with pytest.raises(UnknownName, match="rmsnorm"):
        kernelviz.api.trends("rmsnrm", device="cpu")


def test_an_op_that_only_the_store_knows_is_known(bench: Bench) -> None:
    run = bench.load("night-00")
    gone = msgspec.structs.replace(run.plan.problems[0], op="once_here")
    results = tuple(msgspec.structs.replace(r, problem=gone) for r in run.results)
    plan = msgspec.structs.replace(run.plan, problems=(gone,))
    bench.history.add(msgspec.structs.replace(run, id="old", plan=plan, results=results))
    assert kernelviz.api.trends("once_here", device="cpu")


def test_an_op_without_times_says_so(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["trends", "topk", "--regressions", "--device", "cpu"]) == 0
    assert "no cold time is stored of cpu" in capsys.readouterr().err
