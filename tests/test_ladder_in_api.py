"""`kernelviz.ladder`: the rungs of an op for scripts and notebooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import sample_ladders as plant
import sample_runs as samples

import kernelviz as kv
from kernelviz import bench as use_cases
from kernelviz.bench import Bench
from kernelviz.bench import ladder_measuring as measuring
from kernelviz.core import BadField, Plan, UnknownName, UnknownRun
from kernelviz.store import Store


@pytest.fixture(autouse=True)
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bench]:
    made = Bench(Store.open(tmp_path / "store"), (samples.H200, samples.CPU))
    monkeypatch.setattr(use_cases, "current", lambda: made)
    yield made
    made.close()


def test_a_run_an_id_and_a_file_give_the_same_ladder(tmp_path: Path) -> None:
    run = kv.load("h200-add")
    run.save(tmp_path / "add.json")
    problem = "add fp32 n=268435456"
    frames = [
        kv.ladder(run=source, problem=problem, machine_code=False).to_frame()
        for source in (run, "h200-add", tmp_path / "add.json")
    ]
    assert frames[0].equals(frames[1])
    assert frames[0].equals(frames[2])
    steps = frames[0].set_index("variant")
    assert steps.loc["cuda_vec16", "over"] == "cuda_scalar"
    assert steps.loc["cuda_vec16", "verdict"] == "faster"
    assert steps.loc["cuda_vec16", "gain_low"] > 1


def test_the_report_says_what_it_is_and_is_saved_in_three_formats(tmp_path: Path) -> None:
    report = kv.ladder("matmul", problem="matmul bf16 m=4096 n=4096 k=4096", machine_code=False)
    assert repr(report).startswith(
        "<kernelviz ladder of matmul bf16 m=4096 n=4096 k=4096, run h200-matmul-ladder: CUDA C++: 13 rungs"
    )
    assert report.save(tmp_path / "x.html").read_bytes().startswith(b"<!doctype html>")
    assert report.save(tmp_path / "x.md", "cuda").read_text().startswith("# Ladder of matmul")
    assert report.save(str(tmp_path / "x.json")).read_text().startswith("[\n")
    with pytest.raises(BadField, match=r"\.html, \.md or \.json"):
        report.save(tmp_path / "x.pdf")
    figure = kv.plots.value_by_step(report.ladder, "cuda")
    assert len(figure.data) == 1 + 3 + 13  # the line, two libraries and the roof, the rungs


def test_sizes_choose_the_problem() -> None:
    assert kv.ladder("matmul", sizes={"m": 512}, machine_code=False).ladder.problem.sizes["m"] == 512


def test_measure_plans_all_rungs_and_shows_the_new_run(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    plans: list[Plan] = []

    def start(_bench: Bench, plan: Plan, **_more: object) -> str:
        plans.append(plan)
        return bench.history.add(plant.run(id="measured"))

    monkeypatch.setattr(measuring, "start", start)
    report = kv.ladder("add", measure=True, sizes={"n": 2**24}, dtype="fp32")
    assert {"torch_eager", "cuda_scalar", "cuda_adaptive", "triton_block"} <= set(plans[0].variants)
    assert report.ladder.run.id == "measured"
    steps = report.to_frame().set_index("variant")
    assert steps.loc["cuda_vec16_unrolled", "status"] == "wrong"
    assert steps.loc["cuda_adaptive", "over"] == "cuda_vec16"


def test_bad_input_names_the_field() -> None:
    with pytest.raises(UnknownName, match="matmul"):
        kv.ladder("matmol")
    with pytest.raises(BadField, match="it is a run of add, not of matmul"):
        kv.ladder("matmul", run="h200-add")
    with pytest.raises(BadField, match="no run here shows its ladder"):
        kv.ladder("grouped_matmul")
    with pytest.raises(BadField, match="it measures a new run"):
        kv.ladder("add", measure=True, run="h200-add")
    with pytest.raises((UnknownRun, BadField)):
        kv.ladder(run="no-such-run")
    with pytest.raises(UnknownName, match="l2"):
        kv.ladder("add", l2="hot")
