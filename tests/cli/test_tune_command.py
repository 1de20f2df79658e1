"""`kernelviz tune` and `kernelviz tunings` as a user has them: a real process that Ctrl-C ends, and commands that continue with
its store; real workers on the CPU."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from lasting_bench import LastingBench, lasting_bench

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.hardware.cpu import cpu
from kernelviz.store import Store

pytestmark = pytest.mark.xdist_group("device")
PLUGIN = str(Path(__file__).parents[1] / "planted_tuning.py")
ASKED = ["add", "in_blocks", "--size", "n=2048", "--device", "cpu", "--with", PLUGIN]


class Printed(NamedTuple):
    """What a command that has ended returned and printed."""

    returncode: int
    stdout: str
    stderr: str


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("tune")


@pytest.fixture(scope="module")
def lasting(folder: Path) -> Iterator[LastingBench]:
    made = lasting_bench(folder)
    yield made
    made.end()


@pytest.fixture
def bench(lasting: LastingBench, monkeypatch: pytest.MonkeyPatch) -> LastingBench:
    """The bench of every command of this process, so that they share a worker."""
    monkeypatch.setattr(use_cases, "current", lambda: lasting)
    return lasting


def test_tuned_cancelled_resumed_used_and_forgotten(
    bench: LastingBench, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def kernelviz(*arguments: str) -> Printed:
        return Printed(main(arguments), *capsys.readouterr())

    environment = os.environ | {
        "KERNELVIZ_HOME": str(folder / "home"),
        "KERNELVIZ_RUNTIME_DIR": str(folder / "runtime"),
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "CUDA_VISIBLE_DEVICES": "",
    }
    process = subprocess.Popen(
        # A shell's jobs in the background ignore this signal, and so would what they start.
        ["env", "--default-signal=INT", sys.executable, "-m", "kernelviz", "tune", *ASKED, "--budget-s", "0.06"],
        env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert process.stderr is not None
    told = ""
    for line in process.stderr:
        told += line
        if " 14/32 " in f" {line.strip()}":
            process.send_signal(signal.SIGINT)
            break
    out, rest = process.communicate(timeout=120)
    told += rest
    assert process.returncode == 1, told
    assert re.search(r"cancelled: \d+ of 32 configurations are measured, and none is stored", told)
    run_id = re.search(r"kernelviz tune --resume (\S+)`", told)
    assert run_id is not None
    assert f"run {run_id[1]}" in out

    assert kernelviz("tunings").stderr.startswith("no tuning is stored here")
    done = kernelviz("tune", "--resume", run_id[1], "--json")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["status"], found["planned"], found["tried"], found["failed"]) == ("finished", 32, 28, 14)
    assert found["kept"]["configuration"] == found["best"]
    assert found["best"]["block"] >= 512
    assert found["seconds"] > found["preparing_s"] > 0
    assert {f["stage"] for f in found["failures"]} == {"compile", "wrong", "unavailable"}

    shown = kernelviz("runs", "show", run_id[1]).stdout
    assert re.search(r"✕ 7 × does not compile: out of resource: shared memory", shown)
    assert re.search(
        r"Best: block=\d+, way=\d, [\d.]+× faster than the default \([\d.]+–[\d.]+\)\. in_blocks uses it from now on",
        shown,
    )
    assert re.search(r"Tuning took [\d.]+ s of the device", shown)

    used = kernelviz(
        "run", "add", "--size", "n=2048", "--variants", "torch_eager,in_blocks", "--with", PLUGIN,
        "--device", "cpu", "--quick",
    )  # fmt: skip
    assert used.returncode == 0, used.stderr
    assert f"(run {run_id[1]})" in used.stdout
    assert "in_blocks, tuned: block=" in used.stdout

    (kept,) = json.loads(kernelviz("tunings", "--json").stdout)
    assert (kept["run_id"], kept["variant"]) == (run_id[1], "in_blocks")
    assert kernelviz("tunings", "forget", "add", "in_blocks", "--size", "n=64").returncode == 2
    assert "forgotten" in kernelviz("tunings", "forget", "add", "in_blocks", "--size", "n=2^11").stderr
    assert kernelviz("tunings", "--json").stdout.strip() == "[]"
    assert kernelviz("tunings", "keep", run_id[1]).returncode == 0
    assert len(json.loads(kernelviz("tunings", "--json").stdout)) == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["tune", "add", "torch_eager", "--size", "n=64", "--device", "cpu"], "nothing to tune"),
        (["tune", *ASKED[:2], "--size", "n=64,128", *ASKED[4:]], "one problem at a time"),
        (["tune", "add", "x", "--resume", "r"], "leave out OP and VARIANT"),
        (["tune", "--resume", "no_such_run"], "no_such_run"),
        (["tunings", "keep", "no_such_run"], "no_such_run"),
        (["run", "add", "--size", "n=64", "--variants", "in_blocks[block=63]", *ASKED[4:]], "its space has 64, 32"),
    ],
)
def test_bad_usage_is_one_line_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    made: list[Bench] = []

    def current() -> Bench:
        made.append(Bench(Store.open(tmp_path), (cpu(),), lock_directory=tmp_path))
        return made[-1]

    monkeypatch.setattr(use_cases, "current", current)
    code, printed = main(arguments), capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert words in printed.err
    assert printed.err.count("\n") == 1
    for bench in made:
        bench.close()


def test_what_a_tuning_says_and_how_the_choice_for_one_shape_does_at_another(
    bench: LastingBench, capsys: pytest.CaptureFixture[str]
) -> None:
    def kernelviz(*arguments: str) -> Printed:
        return Printed(main(arguments), *capsys.readouterr())

    ids = []
    for n, count in (("256", "8"), ("128", "6")):
        case = ["add", "in_blocks", "--size", f"n={n}", *ASKED[4:], "--configurations", count, "--seed", "2"]
        tuned = kernelviz("tune", *case, "--budget-s", "0.01", "--json")
        assert tuned.returncode == 0, tuned.stderr
        ids.append(json.loads(tuned.stdout)["run"])
    shown = kernelviz("tunings", "show", ids[0])
    assert shown.returncode == 0, shown.stderr
    assert re.search(r"^(Best: block=|No configuration is measurably faster)", shown.stdout, re.MULTILINE)
    assert "8 of 8 planned configurations have a result" in shown.stdout
    found = json.loads(kernelviz("tunings", "show", ids[0], "--json").stdout)
    assert {p["name"] for p in found["parameters"]} == {"block", "way"}
    assert len(found["configurations"]) == 8
    best = found["best"]
    assert kv.configurations(ids[0]).best == best
    assert len(kv.configurations(ids[0]).to_frame()) == 8
    before = kernelviz("tunings", "transfer", "add", "in_blocks", "--json")
    known = {(p["tuned_for"], p["measured_at"]): p for p in json.loads(before.stdout)["pairs"]}
    measured = kernelviz("tunings", "transfer", "add", "in_blocks", "--measure", "--json")
    assert measured.returncode == 0, measured.stderr
    after = {(p["tuned_for"], p["measured_at"]): p for p in json.loads(measured.stdout)["pairs"]}
    assert known.keys() == after.keys() >= {("add fp32 n=256", "add fp32 n=128")}
    assert "not_measured" not in {p["state"] for p in after.values()}
    assert all(p["ratio"] and p["run"] for p in after.values() if p["state"] == "measured")
    frame = kv.transfer("add", "in_blocks").to_frame()
    assert frame.loc["add fp32 n=256", "add fp32 n=256"] == 1.0
    refused = kernelviz("tunings", "transfer", "add", "torch_eager")
    assert (refused.returncode, refused.stdout) == (2, "")


def test_from_python(bench: LastingBench) -> None:
    made = kv.tune(
        "add", "in_blocks", sizes={"n": 1024}, device="cpu", plugins=[PLUGIN], configurations=8, seed=3, budget_s=0.01
    )
    assert made.run.plan.search is not None
    assert made.run.plan.search.seed == 3
    assert len(made.run.plan.variants) == 8
    assert made.best is not None
    assert made.best["block"] > 0
    assert made.seconds > made.preparing_s
    assert made.tuning is not None
    assert made.tuning.configuration == made.best
    assert kv.tunings("add")[0].tuning == made.tuning
    frame = made.to_frame()
    assert list(frame["is_default"]).count(True) == 1
    assert frame["time_s"].gt(0).all(), frame
    assert sum(map(len, made.failures.values())) + len(frame) == 8, made.failures
    assert "configurations of in_blocks" in repr(made)
