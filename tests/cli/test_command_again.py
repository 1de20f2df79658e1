"""The line that asks for a plan again asks for exactly that plan and method when the command line itself reads it."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import msgspec
import pytest
import rehearsed_bench as rehearsed
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.cli import run as run_command
from kernelviz.core.command import commands, unsaid
from kernelviz.core.problem import QUICK, Method, Plan, Problem
from kernelviz.formats import shipped_runs

Asked = list[tuple[Plan, Method]]


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> Asked:
    """What `kernelviz run` would have measured."""
    made: Asked = []
    bench = rehearsed.RehearsedBench((samples.H200, samples.CPU), roofs=samples.H200_ROOFS)
    monkeypatch.setattr(use_cases, "current", lambda: bench)

    def take(_bench: Any, plan: Plan, method: Method, **_options: Any) -> int:
        made.append((plan, method))
        return 0

    monkeypatch.setattr(run_command, "measure_plan", take)
    return made


def again(asked: Asked, plan: Plan, method: Method) -> list[Plan]:
    for line in commands(plan, method):
        words = shlex.split(line)
        assert words[0] == "kernelviz"
        assert main(words[1:]) == 0, line
    assert all(found == method for _, found in asked)
    return [found for found, _ in asked]


@pytest.mark.parametrize("name", shipped_runs.names())
def test_the_plan_of_every_shipped_run(asked: Asked, name: str) -> None:
    run = shipped_runs.load(name)
    if unsaid(run.method):
        pytest.fail(f"{name}: {unsaid(run.method)}")
    found = again(asked, run.plan, run.method)
    assert [p for plan in found for p in plan.problems] == list(run.plan.problems)
    assert all(msgspec.structs.replace(p, problems=run.plan.problems) == run.plan for p in found)


@pytest.mark.parametrize("method", [Method(), QUICK])
def test_without_compilation_ahead(asked: Asked, method: Method) -> None:
    problem = Problem(op="add", sizes={"n": 64}, dtype="fp32")
    plan = Plan(problems=(problem,), variants=("torch_eager",), baseline="torch_eager", device="cpu")
    off = msgspec.structs.replace(method, ahead=False)
    assert again(asked, plan, off) == [plan]
    assert not asked[0][1].compiles_ahead


def test_precision_data_quick_and_sizes_that_are_no_product(asked: Asked) -> None:
    sizes = ({"m": 64, "n": 32, "k": 16}, {"m": 128, "n": 8, "k": 16}, {"m": 5, "n": 7, "k": 3})
    problems = tuple(Problem(op="matmul", sizes=s, dtype="fp32", compute="tf32", data="zeros") for s in sizes)
    plan = Plan(problems=problems, variants=("cuda_tiled", "torch_eager"), baseline="cuda_tiled", device="cuda:0")
    found = again(asked, plan, QUICK)
    assert [p for one in found for p in one.problems] == list(problems)
    assert len(found) == 3
    assert {(one.variants, one.baseline, one.device) for one in found} == {(plan.variants, plan.baseline, plan.device)}


def test_two_precisions_are_two_lines_and_figures_are_named(asked: Asked) -> None:
    problems = tuple(Problem(op="add", sizes={"n": 2**20}, dtype=d) for d in ("fp32", "bf16"))
    plan = Plan(problems=problems, variants=("torch_eager",), baseline="torch_eager", device="cpu")
    method = Method(budget_s=0.3, clock="sustained", load_s=10.0, figures=("cold", "energy"))
    found = again(asked, plan, method)
    assert [one.problems for one in found] == [(problems[0],), (problems[1],)]


def test_a_plug_in_and_a_name_with_spaces_survive_the_shell(tmp_path: Path) -> None:
    file = tmp_path / "my $kernels; rm.py"
    plan = Plan(
        problems=(Problem(op="add", sizes={"n": 8}, dtype="fp32"),), variants=("mine",), baseline="mine", device="cpu",
        plugins=(str(file),),
    )  # fmt: skip
    (line,) = commands(plan, Method())
    words = shlex.split(line)
    assert words[words.index("--with") + 1] == str(file)
    assert unsaid(Method(half_width=0.01, seeds=5)) == "no option asks for: half-width 0.01, seeds 5"
