"""Runs that another tool measured, written as files: their times are there, under their own tags, and nothing is invented."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import peers
import pytest
import sample_runs as samples

from kernelviz.core.result import Result, Timing
from kernelviz.core.run import Run
from kernelviz.formats import exports, read, shipped_runs
from kernelviz.metrics import foreign_times
from kernelviz.text.failures import STAGES
from kernelviz.text.foreign_times import NOT_OURS

SIMPLE, COPIES = read(peers.nvbench())[0], read(peers.nvbench())[8]
REPEATED = read(peers.gbench("repetitions"))[0]
H200 = shipped_runs.load("h200-add")


def page(run: Run) -> str:
    return exports()["html"].encode(run).decode()


def test_an_axis_called_like_a_property_of_ours_is_written_beside_it() -> None:
    result = SIMPLE.results[0]
    problems = [msgspec.structs.replace(result.problem, sizes={"dtype": size, "n": 8}) for size in (1, 2)]
    run = msgspec.structs.replace(
        SIMPLE,
        plan=msgspec.structs.replace(SIMPLE.plan, problems=tuple(problems), variants=(result.variant,)),
        results=tuple(msgspec.structs.replace(result, problem=problem) for problem in problems),
    )
    (benchmark,) = json.loads(exports()["nvbench"].encode(run))["benchmarks"]
    assert [axis["name"] for axis in benchmark["axes"]].count("dtype") == 2
    assert [s["name"].count(f"dtype={size} n=8") for s, size in zip(benchmark["states"], (1, 2), strict=True)] == [1, 1]


@pytest.mark.parametrize("run", [SIMPLE, COPIES, REPEATED], ids=["simple", "copies", "repeated"])
def test_the_page_holds_every_time_and_draws_nothing(run: Run) -> None:
    html = page(run)
    assert "no correct time yet" not in html
    assert "Every figure is in the tables" not in html
    assert 'id="data"' not in html
    assert 'id="plotly"' not in html
    assert NOT_OURS in html
    times = [f.estimate for r in run.results for f in foreign_times.of_case(r).values()]
    assert times
    for time_s in times:
        assert f"data-v={time_s:.9g}>" in html
    for name in foreign_times.names(run):
        assert f">{name}<" in html
    assert len(html) < 100_000, "no drawing library in it"


def test_the_page_says_why_a_case_has_no_time_and_no_baseline_that_nobody_chose() -> None:
    html = page(COPIES)
    assert html.count(f"✕ {STAGES['unavailable']}") >= 19
    assert "baseline" not in html.partition("<main>")[0]
    assert "measured at an unknown time on" in html


def test_the_page_of_a_cancelled_run_says_so() -> None:
    run = samples.run()
    last = run.results[-1]
    given_up = samples.failed(last.problem, last.variant, "cancelled", "cancelled")
    html = page(msgspec.structs.replace(run, results=(*run.results[:-1], given_up), status="cancelled"))
    assert f"cancelled: {len(run.results) - 1} of {len(run.results)} cases have a result" in html


def nvbench(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(exports()["nvbench"].encode(run))
    return found


def test_nvbenchs_own_times_have_its_own_tags_again() -> None:
    original = json.loads(peers.nvbench())["benchmarks"][0]["states"][0]["summaries"]
    (state,) = nvbench(SIMPLE)["benchmarks"][0]["states"]
    there = {s["tag"]: s["data"][0] for s in original}
    again = {s["tag"]: s["data"][0] for s in state["summaries"]}
    assert {
        "nv/cold/time/gpu/mean",
        "nv/batch/time/gpu/mean",
        "nv/cold/time/cpu/mean",
        "nv/cold/sample_size",
    } <= again.keys()
    assert not any(tag.startswith("kernelviz/") for tag in again)
    for tag, data in again.items():
        assert float(data["value"]) == pytest.approx(float(there[tag]["value"]), rel=5e-3), tag
        assert data["type"] == there[tag]["type"]


def test_nvbenchs_own_times_come_back_as_they_were() -> None:
    (again,) = read(exports()["nvbench"].encode(COPIES))
    for ours, there in zip(COPIES.results, again.results, strict=True):
        assert foreign_times.of_case(there) == foreign_times.of_case(ours)


def test_our_own_times_are_not_said_to_be_by_cuda_events() -> None:
    (once,) = read(exports()["nvbench"].encode(H200))
    (twice,) = read(exports()["nvbench"].encode(once))
    for run in (once, twice):
        (figure,) = foreign_times.of_case(run.results[0]).values()
        assert figure.timer == "cupti"
        assert "by cupti" in (figure.method or "")
        assert "events" not in (figure.method or "")


def test_a_run_of_a_processor_does_not_come_back_as_one_of_a_gpu() -> None:
    run = samples.run()
    here = msgspec.structs.replace(run.environment, device=samples.CPU)
    (again,) = read(exports()["nvbench"].encode(msgspec.structs.replace(run, environment=here)))
    device = again.environment.device
    assert (device.id, device.kind, device.name) == ("cpu", "cpu", samples.CPU.name)
    assert device.compute_capability is None
    assert read(exports()["nvbench"].encode(H200))[0].environment.device.kind == "cuda"


def test_a_case_without_a_figure_stands_among_those_without_a_time() -> None:
    first, second = H200.results[:2]
    bare = Result(problem=first.problem, variant=first.variant, outcome=Timing())
    found = json.loads(exports()["gbench"].encode(msgspec.structs.replace(H200, results=(bare, second))))
    (name,) = found["context"]["without_a_time"]
    assert name.startswith("add/torch_eager/")
    assert not any(b["run_name"].startswith(name) for b in found["benchmarks"])
