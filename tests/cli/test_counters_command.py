"""`kernelviz counters` over a played `ncu`, and the same in Python."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.cli.commands import invoke
from kernelviz.core import uncounted as u
from kernelviz.core.errors import BadField, UnknownRun
from kernelviz.core.events import RunEnded
from kernelviz.core.request import RunRequest
from tests import fake_ncu
from tests.bench.bench_of_sessions import bench_in
from tests.worker.sessions import DEVICE, GPU


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = bench_in(tmp_path, devices=(GPU, DEVICE), session="open_gpu_session")
    monkeypatch.setattr(use_cases, "current", lambda: made)
    monkeypatch.setattr(made, "close", lambda: None)  # a command closes it
    yield made
    Bench.close(made)


def measured(bench: Bench) -> str:
    plan = bench.plan(RunRequest(op="add", sizes={"n": "64,4096"}, variants=("a", "b"), device=GPU.id))
    run_id = bench.run(plan)
    assert [e for _, e in bench.follow(run_id, timeout_s=30) if isinstance(e, RunEnded)]
    return run_id


def test_counters_of_a_run_are_printed_and_stored(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path)
    run_id = measured(bench)
    assert invoke(["counters", run_id, "a,b", "--size", "n=4096"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "add fp32 n=2^12, a"
    assert lines[1].startswith("  ncu 2025.3.1.0, one call after a flush of the caches, in a process of its own")
    assert lines[2] == f"  stored with run {run_id}"
    assert "  ncu counted 134 MB between L2 and device memory, 26843545.60 × the least traffic (5.00 B)" in lines
    assert "    DRAM read: 67.1 MB" in lines
    assert "    FMA pipe: 40.5 %" in lines
    assert "    Issued: 25.0 %" in lines
    assert invoke(["counters", run_id, "b", "--size", "n=4096", "--stored", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["variant"], record["run_id"]) == ("b", run_id)
    assert record["kernels"][0]["dram_read_bytes"] == 67108864
    assert invoke(["counters", run_id, "b", "--size", "n=64", "--stored"]) == 1
    assert "no counters are stored" in capsys.readouterr().err


def test_an_op_has_counters_without_a_run(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path)
    assert invoke(["counters", "add", "a", "--size", "n=64", "--dtype", "fp32", "--replay", "kernel", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert (record["run_id"], record["counters"]["replay"]) == (None, "kernel")


def test_a_refusal_says_what_would_allow_it(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path, "not_permitted")
    assert invoke(["counters", "add", "a", "--size", "n=64"]) == 1
    assert "NVreg_RestrictProfilingToAdminUsers=0" in " ".join(capsys.readouterr().err.split())
    with pytest.raises(u.CountersRefused, match="RestrictProfilingToAdminUsers") as refused:
        kv.counters("add", "a", sizes={"n": 64})
    assert refused.value.uncounted.reason == u.NotPermitted()
    assert invoke(["counters", "add", "a", "--size", "n=64", "--device", "cpu"]) == 2
    assert "hardware counters are read on NVIDIA GPUs only, and Test processor is not one" in capsys.readouterr().err


def test_bad_usage(
    bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path)
    run_id = measured(bench)
    for arguments, said in (
        (["nothing", "a"], "no run 'nothing'"),
        ([run_id, "a"], "2 problems"),
        ([run_id, "z", "--size", "n=64"], "no variant 'z'"),
        (["add", "a", "--size", "n=64", "--stored"], "is an op"),
        (["add", "a", "--size", "n=64", "--replay", "twice"], "no replay 'twice'"),
    ):
        assert invoke(["counters", *arguments]) == 2, arguments
        assert said in capsys.readouterr().err


def test_the_commands_of_profilers_are_the_same_everywhere(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    run_id = measured(bench)
    assert invoke(["counters", run_id, "a", "--size", "n=64", "--commands"]) == 0
    lines = capsys.readouterr().out.splitlines()
    launch = "kernelviz launch add --variants a --size n=64 --dtype fp32"
    assert lines == [
        f"ncu --set full --profile-from-start off --clock-control none {launch}",
        f"nsys profile --capture-range=cudaProfilerApi --capture-range-end=stop {launch}",
    ]
    commands = kv.profiler_commands(run_id, "a", sizes={"n": 64})
    assert commands is not None
    assert [commands.ncu, commands.nsys] == lines
    assert commands.counters == "kernelviz counters add a --size n=64 --dtype fp32"
    assert invoke(["counters", "add", "a", "--size", "n=64", "--commands", "--json"]) == 0
    (record,) = json.loads(capsys.readouterr().out)
    assert record["ncu"] == lines[0]
    assert invoke(["counters", "add", "a", "--size", "n=64", "--commands", "--device", "cpu"]) == 1


def test_python_reads_and_stores_them(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_ncu.on_path(monkeypatch, tmp_path, "two_kernels")
    run_id = measured(bench)
    one = kv.counters(run_id, "a", sizes={"n": 64})
    assert (one.run_id, len(one.counters.kernels)) == (run_id, 2)
    loaded = kv.load(run_id)
    assert [r.variant for r in loaded.results if r.hardware_counters is not None] == ["a"]
    assert kv.counters(loaded, "b", problem="add fp32 n=64").variant == "b"
    with pytest.raises(UnknownRun):
        kv.counters("nothing", "a")
    with pytest.raises(BadField, match="is an op"):
        kv.counters("add", "a", problem="add fp32 n=64")
