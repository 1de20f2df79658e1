"""No option is silently ignored: what cannot be applied is refused, by its name."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples
import sample_tunings as tunings

from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.store import Store


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path), (samples.CPU,), lock_directory=tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "add", "--quick", "--budget-s", "5"], "--quick: 'yes' cannot be used; it takes at most 0.02 s a case"),
        (["run", "add", "--quick", "--budget-s", "1"], "leave out --budget-s"),
        (["run", "add", "--quick", "--l2", "warm"], "--l2: 'warm' cannot be used; this measures cold"),
        (["run", "add", "--figures", "cold", "--l2", "warm"], "add warm to --figures"),
        (["run", "add", "--figures", ""], "--figures: '' cannot be used; name at least one figure; cold, warm"),
        (["runs", "--shipped", "--deleted"], "leave out --deleted"),
        (["runs", "show", "h200-add", "--samples", "--json"], "leave one of them out"),
        (["runs", "resume", "h200-add"], "it came with kernelviz and is finished"),
        (["export", "--all", "-o", "x", "--variants", "a", "--title", "t"], "leave out --variants, --title"),
        (["export", "--all", "-o", "x", "--size", "n=1"], "leave out --size"),
        (["device", "--watch", "--calibrate"], "leave out --calibrate"),
        (["device", "--busy-below", "10"], "--busy-below: '10' cannot be used; it is a limit of --watch"),
        (["device", "--grown-above", "1"], "--grown-above"),
        (["tune", "--resume", "r", "--seed", "0"], "leave out --seed"),
        (["tune", "--resume", "r", "--budget-s", "1", "--size", "n=1"], "leave out --size, --budget-s"),
        (["tunings", "--op", "nosuch"], "no op 'nosuch'"),
        (["tunings", "forget", "add", "nosuch", "--size", "n=3"], "VARIANT: 'nosuch' cannot be used"),
    ],
)
def test_it_is_refused(bench: Bench, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str) -> None:
    assert main(arguments) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.count("\n") == 1
    assert printed.out == ""
    assert bench.runs() == ()


def test_deleted_and_shipped_runs_are_searched_too(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for number, title in enumerate(("größe one", "GRÖSSE two", "three")):
        bench.history.add(samples.run(id=f"r{number}", title=title))
        bench.history.delete(f"r{number}")

    def found(*options: str) -> set[str]:
        assert main(["runs", "--json", *options]) == 0
        return {run["id"] for run in json.loads(capsys.readouterr().out)}

    assert found("--deleted") == {"r0", "r1", "r2"}
    assert found("--deleted", "--search", "Größe") == {"r0", "r1"}
    assert found("--deleted", "--search", "größe rmsnorm two") == {"r1"}
    assert len(found("--deleted", "--search", "größe", "--limit", "1")) == 1
    assert found("--shipped", "--search", "softmax h200") == {"h200-softmax", "h200-softmax-backward"}
    assert len(found("--shipped", "--limit", "2")) == 2


def test_a_run_named_twice_is_deleted_once(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    bench.history.add(samples.run(id="r1"))
    assert main(["runs", "delete", "-y", "r1", "r1"]) == 0
    assert capsys.readouterr().err.count("deleted r1") == 1


def test_a_device_without_a_counter_of_energy_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    made = rehearsed.RehearsedBench((samples.H200, samples.CPU))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    asked = ["run", "add", "--size", "n=64", "--variants", "torch_eager"]
    for options, said in ((["--energy"], True), (["--figures", "cold,energy"], True), ([], False)):
        assert main([*asked, "--device", "cpu", *options]) == 0
        assert ("no energy is measured: cpu has no counter of it" in capsys.readouterr().err) is said
    assert main([*asked, "--device", "cuda:0", "--energy"]) == 0
    assert "no energy" not in capsys.readouterr().err


def test_the_help_names_what_is_taken(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert main(["run", "--help"]) == 0
    printed = capsys.readouterr().out
    for word in ("sorted", "one_value", "uint8"):
        assert word in printed


def test_what_cannot_be_forgotten_is_the_size_where_the_variant_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store.open(tmp_path)
    store.tunings.put(tunings.tuning())
    made = Bench(store, (samples.CPU,), lock_directory=tmp_path)
    monkeypatch.setattr(use_cases, "current", lambda: made)
    for size, said in (
        ("q=3", "no axis 'q' of op 'add'"),
        ("n=3", "--size: 'n=3' cannot be used; triton_tuned was not"),
    ):
        assert main(["tunings", "forget", "add", "triton_tuned", "--size", size]) == 2
        assert said in capsys.readouterr().err
    assert main(["tunings", "forget", "add", "triton_tuned", "--size", "n=2^26"]) == 0
    made.close()
