"""The bench beside other processes: a killed server, a second one that waits, a run that another process measures."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from kernelviz.bench import Bench
from kernelviz.core.errors import BadField
from kernelviz.core.events import CaseDone, DeviceBusy, RunEnded
from kernelviz.core.problem import Method
from kernelviz.core.request import RunRequest
from kernelviz.core.result import Failure
from tests.bench.bench_of_sessions import bench_in

ROOT = Path(__file__).parents[2]


class Server:
    """A bench in a process of its own that measures these variants."""

    def __init__(self, folder: Path, variants: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.bench.bench_of_sessions", str(folder), variants],
            cwd=ROOT,
            env={**os.environ, "KERNELVIZ_TEST_PIDS": str(folder)},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self.process.stdout is not None
        self.run_id = self.process.stdout.readline().strip()


def end(server: Server) -> None:
    server.process.kill()
    server.process.communicate()


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Bench]:
    made = bench_in(tmp_path)
    yield made
    made.close()


def test_kill_9_of_the_server_and_resume(bench: Bench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`a` is measured, then a compiler-like grandchild runs in a session of its own; then the server is killed."""
    server = Server(tmp_path, "a,compiler")
    until = time.monotonic() + 20
    while not (tmp_path / "worker.pid").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    pids = [int((tmp_path / f"{name}.pid").read_text()) for name in ("worker", "child", "orphan")]
    assert all(psutil.pid_exists(pid) for pid in pids)
    assert bench.progress(server.run_id).status == "running"
    while not bench.load(server.run_id).results:  # told by the worker before the compiler began, stored by the server
        assert time.monotonic() < until
        time.sleep(0.01)
    with pytest.raises(BadField, match=f"process {server.process.pid}"):
        bench.cancel(server.run_id)
    end(server)
    killed = time.monotonic()
    while any(psutil.pid_exists(pid) for pid in pids):
        assert time.monotonic() - killed < 3
        time.sleep(0.01)

    assert bench.recover() == [server.run_id]
    assert bench.progress(server.run_id).status == "interrupted"
    kept = bench.load(server.run_id)
    assert [r.variant for r in kept.results] == ["a"]
    monkeypatch.setenv("KERNELVIZ_TEST_PIDS", str(tmp_path))
    bench.resume(server.run_id)
    *_, (_, last) = bench.follow(server.run_id, timeout_s=20)
    assert last == RunEnded(status="finished")
    found = bench.load(server.run_id)
    stages = [r.outcome.stage if isinstance(r.outcome, Failure) else "" for r in found.results]
    assert [r.case for r in found.results] == found.plan.cases()
    assert stages == ["", "timeout", "", "timeout"]


def test_beside_a_busy_server_one_waits_and_is_told_for_whom(bench: Bench, tmp_path: Path) -> None:
    server = Server(tmp_path, "until_cancelled")
    for _, event in bench.follow(server.run_id, timeout_s=0.6):
        raise AssertionError(event)  # it measures for ever
    ours = bench.run(bench.plan(RunRequest(op="add", sizes={"n": "1"}, variants=("a",))), Method(budget_s=0.01))
    told = [e for _, e in bench.follow(ours, timeout_s=2) if isinstance(e, DeviceBusy)]
    assert f"process {server.process.pid}" in told[0].holder
    end(server)
    *_, (_, last) = bench.follow(ours, timeout_s=20)
    assert last == RunEnded(status="finished")


def test_a_run_of_another_process_can_be_followed(bench: Bench, tmp_path: Path) -> None:
    server = Server(tmp_path, "a,b")
    events = list(bench.follow(server.run_id, timeout_s=20))
    # A case is told when its cold time stands, and again with its other figures unless both were stored between two looks:
    # which of them come first depends on when one looks.
    told = [e.result.case.key for _, e in events if isinstance(e, CaseDone)]
    assert set(told) == {c.key for c in bench.load(server.run_id).plan.cases()}
    assert all(told.count(key) <= 2 for key in told)
    revisions = [revision for revision, _ in events]
    assert revisions == sorted(set(revisions)), "in the order in which they were stored"
    assert events[-1][1] == RunEnded(status="finished")
    assert [e for _, e in bench.follow(server.run_id, after=events[-1][0])] == [RunEnded(status="finished")]
    progress = bench.progress(server.run_id)
    assert (progress.done, progress.total, progress.status) == (4, 4, "finished")
    end(server)
