"""`kernelviz workloads`: list, run, show, compare, export and manage, over real processes where something is measured."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import sample_workloads as samples

import kernelviz as kv
from kernelviz.bench import Bench
from kernelviz.cli import main
from kernelviz.formats import workload_document

PLUGIN = str(Path(__file__).parents[1] / "planted_workload.py")


def test_a_run_prints_its_ladder_and_its_progress(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(bench, "close", lambda: None)
    command = ["workloads", "run", "planted", "--with", PLUGIN, "--variants", "fast,raises", "--set", "work=2"]
    assert main(command) == 1, "a case failed"
    printed = capsys.readouterr()
    assert "1 (baseline)" in printed.out
    assert "✕ crashed" in printed.out
    assert "It sleeps, so it says nothing about work." in printed.out
    assert "raises: crashed" in printed.err
    untried = ["workloads", "run", "planted", "--with", PLUGIN, "--set", "work=0", "--variants"]
    assert main([*untried, "fast,on_gpu"]) == 0, "a variant that cannot run here is named, and does not count as failed"
    printed = capsys.readouterr()
    assert max(map(len, printed.out.splitlines())) <= 130
    assert "\non_gpu: " in printed.out
    assert "Bytes sent" in printed.out
    (_, run) = bench.workloads.find()
    assert main(["workloads", "show", run.id, "--json"]) == 0
    records = json.loads(capsys.readouterr().out)
    assert [r["variant"] for r in records] == ["slow", "fast", "raises"]
    assert records[2]["failure"] == "crash"
    report = kv.load_workload(run.id)
    assert list(report.to_frame()["variant"]) == ["slow", "fast", "raises"]
    assert report.insight.endswith("1 case failed.")
    assert report.chart().data


def test_lists_say_where_a_workload_can_run_and_what_its_times_say(
    bench: Bench, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["workloads", "list", "--with", PLUGIN]) == 0
    printed = capsys.readouterr().out
    assert "cpu (mechanics only)" in printed
    assert main(["workloads", "--with", PLUGIN, "--json"]) == 0
    names = [w["name"] for w in json.loads(capsys.readouterr().out)]
    assert {"planted", "paired"} <= set(names)
    bench.workloads.add(samples.of_pair())
    assert main(["workloads", "runs"]) == 0
    printed = capsys.readouterr()
    assert "Restriction" in printed.out
    assert "times say nothing about GPUs" in printed.err


def test_runs_are_compared_exported_imported_and_managed(
    bench: Bench, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bench.workloads.add(samples.run())
    file = tmp_path / "other.workload.json"
    file.write_bytes(workload_document.encode(samples.run(id="w-b", seed=5, times_s={"slow": 2e-3, "fast": 2e-3})))
    assert main(["workloads", "compare", "w-sample", str(file)]) == 0
    printed = capsys.readouterr()
    assert "worse" in printed.out
    assert "2 worse, 2 the same" in printed.err
    assert main(["workloads", "compare", "w-sample", "--variants", "slow,fast", "--json"]) == 0
    assert [p["verdict"] for p in json.loads(capsys.readouterr().out)] == ["better", "better"]
    assert main(["workloads", "compare", "w-sample"]) == 2
    assert main(["import", str(file)]) == 0
    assert "unchanged since it was saved" in capsys.readouterr().err
    assert main(["workloads", "export", "w-b", "-o", str(tmp_path / "b.html")]) == 0
    assert b"<!doctype html>" in (tmp_path / "b.html").read_bytes()
    assert main(["workloads", "rename", "w-b", "named"]) == 0
    assert main(["workloads", "note", "w-b", "noted"]) == 0
    assert main(["workloads", "delete", "w-b", "--yes"]) == 0
    capsys.readouterr()
    assert main(["workloads", "runs", "--deleted", "--json"]) == 0
    (deleted,) = json.loads(capsys.readouterr().out)
    assert (deleted["title"], deleted["note"]) == ("named", "noted")
    assert main(["workloads", "restore", "w-b"]) == 0
    assert len(kv.workload_runs()) == 2
    assert list(kv.compare_workloads("w-sample", "w-b")["figure"].unique()) == ["step_s", "rate", "loss", "sent"]


def test_wrong_input_names_the_remedy(bench: Bench, capsys: pytest.CaptureFixture[str]) -> None:
    for command, message in (
        (["workloads", "run", "plantedd", "--with", PLUGIN], "planted"),
        (["workloads", "run", "planted", "--with", PLUGIN, "--set", "work"], "axis=values"),
        (["workloads", "show", "w-none"], "w-none"),
        (["workloads", "run", "planted", "--with", "/none.py"], "there is no such file"),
    ):
        assert main(command) == 2
        assert message in capsys.readouterr().err
