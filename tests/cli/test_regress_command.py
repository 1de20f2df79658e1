"""`kernelviz regress`: measure a stored plan again and compare it with its run."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sample_runs as samples
from rehearsed_bench import RehearsedBench

import kernelviz.api
import kernelviz.bench
from kernelviz.bench.comparison import compare
from kernelviz.bench.regression import again, machine_slower
from kernelviz.cli import main
from kernelviz.core.errors import BadField, UnknownRun
from kernelviz.core.events import Event
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Result, Stage, Timing
from kernelviz.core.run import Run
from tests.bench.bench_of_sessions import bench_in


def test_the_plan_is_measured_again_by_the_same_method(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = bench_in(tmp_path)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
    from kernelviz.core.problem import Method

    first = bench.run(
        bench.plan(RunRequest(op="add", sizes={"n": "1,2"}, variants=("a", "b"), device="cpu")), Method(budget_s=0.013)
    )
    for _ in bench.follow(first, timeout_s=20):
        pass
    assert main(["regress", first]) == 0
    newest = bench.runs(1)[0]
    assert newest.id != first
    assert newest.title.startswith("again: ")
    old, new = bench.load(first), bench.load(newest.id)
    assert (new.plan, new.method) == (old.plan, old.method)
    assert f"measured as run {newest.id}" in capsys.readouterr().err
    with pytest.raises(UnknownRun):
        again(bench, "none")
    with pytest.raises(BadField, match="this machine has"):
        again(bench, first, device="cuda:7")
    bench.close()


def test_a_run_that_goes_on_is_not_measured_again() -> None:
    bench = RehearsedBench((samples.CPU,), stored=(samples.run(id="going", status="running"),))
    with pytest.raises(BadField, match="still goes on"):
        again(bench, "going")
    bench.close()


def slowed(run: Run, factor: float) -> Run:
    results = []
    for result in run.results:
        timing = result.timing
        assert timing is not None
        assert timing.device_cold_s is not None
        cold = timing.device_cold_s
        figure = msgspec.structs.replace(
            cold,
            estimate=cold.estimate * factor,
            samples=tuple(s * factor for s in cold.samples or ()) or None,
            low=None if cold.low is None else cold.low * factor,
            high=None if cold.high is None else cold.high * factor,
        )
        results.append(msgspec.structs.replace(result, outcome=Timing(device_cold_s=figure)))
    return msgspec.structs.replace(run, id="slowed", results=tuple(results))


def half_width_fraction(result: Result) -> float:
    """Half the interval of the device time, as a fraction of it."""
    assert result.timing is not None
    cold = result.timing.device_cold_s
    assert cold is not None
    return (cold.high - cold.low) / 2 / cold.estimate if cold.low is not None and cold.high is not None else math.inf


def test_the_same_code_that_is_slower_is_the_machine() -> None:
    from kernelviz.formats import shipped_runs

    run = shipped_runs.load("h200-matmul")
    timed = msgspec.structs.replace(run, results=tuple(r for r in run.results if r.timing is not None))
    same = compare(timed, slowed(timed, 1.0))
    assert machine_slower(same, None) == ()
    found = compare(timed, slowed(timed, 1.05))
    assert {p.kind for p in found.pairs} == {"same code"}
    # A time that is known to 2.7 % only, of a product of 8192³ with ten samples, cannot show that it is 5 % slower.
    clear = [p for p in found.pairs if half_width_fraction(p.before) < 0.02]
    assert machine_slower(found, None) == tuple(clear)
    assert len(clear) >= len(found.pairs) - 1
    assert machine_slower(found, 0.2) == ()


def test_the_same_in_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import kernelviz
    from kernelviz.core.problem import Method

    bench = bench_in(tmp_path)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
    first = bench.run(
        bench.plan(RunRequest(op="add", sizes={"n": "1"}, variants=("a", "b"), device="cpu")), Method(budget_s=0.013)
    )
    for _ in bench.follow(first, timeout_s=20):
        pass
    found = kernelviz.regress(first)
    assert found.a.id == first
    assert found.b.id == bench.runs(1)[0].id != first
    cases = kernelviz.trends("add", device="cpu")
    assert {(c.variant, len(c.trend.points)) for c in cases} == {("a", 2), ("b", 2)}
    bench.close()


def elsewhere(monkeypatch: pytest.MonkeyPatch, **options: Any) -> RehearsedBench:
    """A machine without a GPU that keeps a run of one: a variant that runs here too, and one that does not."""
    run = samples.run(id="gpu")
    bench = RehearsedBench((samples.CPU,), stored=(run,), **options)
    monkeypatch.setattr(kernelviz.bench, "current", lambda: bench)
    return bench


def test_the_device_of_another_machine_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = elsewhere(monkeypatch)
    assert bench.load("gpu").plan.device == "cuda:0"
    assert main(["regress", "gpu"]) == 2
    assert "'cuda:0' cannot be used; run gpu was measured on it and it is not here" in capsys.readouterr().err
    with pytest.raises(BadField, match="--device"):
        kernelviz.api.regress("gpu")
    assert len(bench.runs()) == 1
    assert again(bench, "gpu"), "a button that says where it measures does so"


def test_what_cannot_be_tried_here_is_not_broken(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = samples.run(id="gpu")
    unable: dict[str, tuple[Stage, str]] = {"triton_persistent": ("unavailable", "needs an NVIDIA GPU")}
    elsewhere(monkeypatch, faults=unable)
    assert main(["regress", "gpu", "--device", "cpu"]) == 0
    printed = capsys.readouterr()
    cases = sum(r.variant == "triton_persistent" for r in run.results)
    assert f"not compared: {cases} cases that could not be tried here" in printed.err
    assert "without a correct time" not in printed.err
    elsewhere(monkeypatch, faults=dict.fromkeys(run.plan.variants, ("unavailable", "needs an NVIDIA GPU")))
    assert main(["regress", "gpu", "--device", "cpu"]) == 2
    assert "no case was tried, so nothing is compared (needs an NVIDIA GPU)" in capsys.readouterr().err
    elsewhere(monkeypatch, faults={"triton_persistent": ("wrong", "y[0]")})
    assert main(["regress", "gpu", "--device", "cpu"]) == 3
    assert f"failed: {cases} without a correct time in B" in capsys.readouterr().err


def test_ctrl_c_before_the_first_case_says_nothing_of_the_code(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    bench = elsewhere(monkeypatch, case_s=30.0)
    follow, begun = bench.follow, []

    def interrupted(run_id: str, after: int = 0, timeout_s: float | None = None) -> Iterator[tuple[int, Event]]:
        if not begun:
            begun.append(run_id)
            raise KeyboardInterrupt
        return follow(run_id, after, timeout_s)

    monkeypatch.setattr(bench, "follow", interrupted)
    assert main(["regress", "gpu", "--device", "cpu"]) == 1
    printed = capsys.readouterr()
    assert "cancelled: no case was tried, so nothing is compared" in printed.err
    assert "failed" not in printed.err
    assert printed.out == ""
