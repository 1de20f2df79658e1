"""A selftest as a use case: followed, kept, found again."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelviz.bench import Bench
from kernelviz.core.errors import UnknownName
from kernelviz.core.events import CheckDone, Event, RunEnded
from tests.bench.bench_of_sessions import bench_in


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


def followed(bench: Bench, name: str) -> RunEnded:
    events: list[Event] = [event for _, event in bench.follow(name, timeout_s=20)]
    assert isinstance(events[-1], RunEnded), events[-3:]
    return events[-1]


def test_a_whole_selftest_is_kept_and_found_again(bench: Bench, tmp_path: Path) -> None:
    assert bench.last_selftest("cpu") is None
    name = bench.selftest("cpu", owner="ann")
    assert followed(bench, name) == RunEnded(status="finished")
    made = bench.last_selftest("cpu")
    assert made is not None
    assert made == bench.selftest_result(name)
    assert (made.id, [c.name for c in made.checks]) == (name, ["passes", "fails", "absent"])
    assert [c.name for c in made.failed] == ["fails"]
    assert made.timeline is not None
    assert made.environment.kernelviz == "test"  # as the worker sees the machine
    progress = bench.progress(name)
    assert (progress.done, progress.failed, progress.status) == (3, 1, "finished")
    second = bench.selftest("cpu", quick=True)
    followed(bench, second)
    newest = bench.last_selftest("cpu")
    assert newest is not None
    assert newest.id == second
    other = bench_in(tmp_path)
    assert (other.selftest_result(name), other.selftest_result(second)) == (made, newest)
    other.close()


def test_chosen_checks_are_told_and_not_kept(bench: Bench) -> None:
    name = bench.selftest("cpu", only=("passes",))
    followed(bench, name)
    made = bench.selftest_result(name)
    assert made is not None
    assert [c.name for c in made.checks] == ["passes"]
    assert bench.last_selftest("cpu") is None


def test_one_that_breaks_off_says_so_as_a_check_that_failed(bench: Bench) -> None:
    name = bench.selftest("cpu", only=("passes", "abort"))
    end = followed(bench, name)
    assert end.status == "interrupted"
    assert "SIGABRT" in end.message
    made = bench.selftest_result(name)
    assert made is not None
    assert [(c.name, c.passed) for c in made.checks] == [("passes", True), ("came_to_its_end", False)]
    assert "SIGABRT" in made.failed[0].message


def test_a_cancelled_one_is_not_kept(bench: Bench) -> None:
    name = bench.selftest("cpu", only=("passes", "until_cancelled"))
    for _, event in bench.follow(name, timeout_s=20):
        if isinstance(event, CheckDone):
            bench.cancel(name)
    assert bench.progress(name).status == "cancelled"
    assert bench.last_selftest("cpu") is None


def test_without_a_worker_there_is_nothing(tmp_path: Path) -> None:
    bench = bench_in(tmp_path, session="cannot_open")
    name = bench.selftest("cpu")
    end = followed(bench, name)
    assert (end.status, bench.selftest_result(name), bench.last_selftest("cpu")) == ("interrupted", None, None)
    assert "no such device here" in end.message
    with pytest.raises(UnknownName):
        bench.selftest("cuda:9")
    bench.close()
