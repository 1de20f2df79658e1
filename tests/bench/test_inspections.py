"""A look at a case as a use case, over real worker processes whose sessions are played."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelviz.bench import Bench
from kernelviz.core.errors import BadField, UnknownName
from kernelviz.core.events import CaseStep, Event, InspectionDone, RunEnded
from kernelviz.core.problem import Problem
from tests.bench.bench_of_sessions import GPU, bench_in
from tests.worker.sessions import DEVICE

PROBLEM = Problem(op="add", sizes={"n": 4096}, dtype="fp32")


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


def followed(bench: Bench, name: str) -> list[Event]:
    events = [event for _, event in bench.follow(name, timeout_s=20)]
    assert isinstance(events[-1], RunEnded), events[-3:]
    return events


def test_the_facts_are_told_kept_and_found_again(bench: Bench, tmp_path: Path) -> None:
    assert bench.inspection(PROBLEM, "b", "cpu") is None
    job = bench.inspect(PROBLEM, "b", "cpu", owner="ann")
    events = followed(bench, job)
    assert [type(e) for e in events[-3:]] == [CaseStep, InspectionDone, RunEnded]
    assert events[-1] == RunEnded(status="finished")
    made = bench.inspected(job)
    assert made is not None
    assert (made.variant, made.problem, made.passed) == ("b", PROBLEM, False)
    assert bench.inspection(PROBLEM, "b", "cpu") == made
    assert bench.inspection(PROBLEM, "a", "cpu") is None
    other = bench_in(tmp_path)
    assert other.inspection(PROBLEM, "b", "cpu") == made
    assert other.inspected(job) is None
    other.close()


def test_a_worker_that_breaks_down_is_replaced_and_says_why(bench: Bench) -> None:
    job = bench.inspect(PROBLEM, "abort", "cpu")
    end = followed(bench, job)[-1]
    assert isinstance(end, RunEnded)
    assert end.status == "interrupted"
    assert "SIGABRT" in end.message
    assert bench.inspected(job) is None
    following = bench.inspect(PROBLEM, "a", "cpu")
    followed(bench, following)
    assert bench.inspected(following) is not None


def test_what_a_variant_raises_is_the_message_of_the_end_and_costs_no_worker(bench: Bench) -> None:
    followed(bench, bench.inspect(PROBLEM, "a", "cpu"))
    end = followed(bench, bench.inspect(PROBLEM, "out_of_memory", "cpu"))[-1]
    assert end == RunEnded(status="interrupted", message="no memory left")
    state = bench._runner.state("cpu")
    assert state is not None
    assert state.workers_started == 1


def test_what_breaks_the_session_is_the_message_of_the_end(bench: Bench) -> None:
    end = followed(bench, bench.inspect(PROBLEM, "raises", "cpu"))[-1]
    assert isinstance(end, RunEnded)
    assert (end.status, "the session itself broke" in end.message) == ("interrupted", True)


def test_a_cancelled_look_leaves_nothing(bench: Bench) -> None:
    job = bench.inspect(PROBLEM, "until_cancelled", "cpu")
    for _, event in bench.follow(job, timeout_s=20):
        if isinstance(event, CaseStep):
            bench.cancel(job)
    assert bench.progress(job).status == "cancelled"
    assert bench.inspected(job) is None
    assert bench.inspection(PROBLEM, "until_cancelled", "cpu") is None


def test_what_cannot_be_called_here_is_refused_at_once(tmp_path: Path, bench: Bench) -> None:
    for variant, reason in (("needs_cuda", "needs CUDA"), ("half_only", "has no fp32 kernel")):
        with pytest.raises(BadField, match=reason):
            bench.inspect(PROBLEM, variant, "cpu")
    with pytest.raises(UnknownName, match="no_such"):
        bench.inspect(PROBLEM, "no_such", "cpu")
    with pytest.raises(UnknownName):
        bench.inspect(PROBLEM, "a", "cuda:9")
    with pytest.raises(BadField, match="no such file"):
        bench.inspect(PROBLEM, "a", "cpu", plugins=(str(tmp_path / "gone.py"),))


def test_facts_are_of_one_device(tmp_path: Path) -> None:
    both = bench_in(tmp_path, devices=(DEVICE, GPU))
    followed(both, both.inspect(PROBLEM, "a", "cpu"))
    assert both.inspection(PROBLEM, "a", "cpu") is not None
    assert both.inspection(PROBLEM, "a", GPU.id) is None
    both.close()


def test_without_a_worker_there_is_nothing(tmp_path: Path) -> None:
    closed = bench_in(tmp_path, session="cannot_open")
    job = closed.inspect(PROBLEM, "a", "cpu")
    end = followed(closed, job)[-1]
    assert isinstance(end, RunEnded)
    assert "no such device here" in end.message
    assert closed.inspected(job) is None
    closed.close()
