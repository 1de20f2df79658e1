"""The use cases and the commands on a full disk: everything can be read, and whoever wants to store something learns why not."""

from __future__ import annotations

import contextlib
import io
import os
from contextlib import closing
from pathlib import Path
from typing import Any

import full_disk
import msgspec
import pytest
import sample_runs as samples

from kernelviz import bench as use_cases
from kernelviz.cli import main
from kernelviz.core import CaseDone, KernelvizError, RunEnded, RunRequest
from kernelviz.store import Store
from tests.bench.bench_of_sessions import bench_in


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return full_disk.answers(everything, tmp_path_factory.mktemp("full"))


def everything(folder: Path) -> dict[str, Any]:
    answers: dict[str, Any] = {}
    for function in (started, filled_during_a_run):
        answers |= {function.__name__: function(folder / function.__name__)}
        full_disk.free()
    return answers


def started(home: Path) -> dict[str, Any]:
    """A start with a run of a process that has ended, which a start otherwise marks as interrupted."""
    os.environ["KERNELVIZ_HOME"] = str(home)
    run = samples.run(op="add", sizes=[{"n": 1024}], dtype="fp32", id="r1")
    pid = os.fork()
    if not pid:
        with closing(Store.open(home)) as store:
            store.runs.create(run, msgspec.structs.replace(run, id="r2", status="running"))
        os._exit(0)
    os.waitpid(pid, 0)
    full_disk.fill()
    bench = use_cases.current()
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["runs"])
    answer = {
        "runs": {summary.id: summary.status for summary in bench.runs()},
        "same": bench.load("r1") == run,
        "first notice": bench.notices("cpu")[0].kind,
        "health": bench.health()["store"],
        "code": code,
        "listed": [line.split()[0] for line in out.getvalue().splitlines()],
        "warned": err.getvalue(),
    }
    with contextlib.suppress(KernelvizError):
        bench.run(bench.plan(RunRequest(op="add", device="cpu")))
        answer["refused"] = False
    bench.close()
    return answer


def filled_during_a_run(home: Path) -> dict[str, Any]:
    home.mkdir()
    bench = bench_in(home)
    run_id = bench.run(bench.plan(RunRequest(op="add", sizes={"n": "1"}, variants=("a", "until_cancelled"))))
    acknowledged, end = [], None
    for _, event in bench.follow(run_id, timeout_s=20):
        match event:
            case CaseDone(result=result):
                acknowledged.append(result.case.key)
                full_disk.fill()  # the other case has no result before the run is cancelled
                with contextlib.suppress(KernelvizError):
                    bench.cancel(run_id)
            case RunEnded():
                end = event
    on_full_disk = [result.case.key for result in bench.load(run_id).results]
    full_disk.free()
    bench.close()
    with closing(bench_in(home)) as again:
        again.cancel(run_id)  # this process is still there, so it has to say that it does not measure it
        stored = again.load(run_id)
    return {
        "acknowledged": acknowledged,
        "on the full disk": on_full_disk,
        "afterwards": [result.case.key for result in stored.results],
        "status": stored.status,
        "end": None if end is None else [end.status, end.message],
    }


def test_a_start_on_a_full_disk_shows_every_run_and_says_that_nothing_can_be_stored(answers: dict[str, Any]) -> None:
    answer = answers["started"]
    assert answer["runs"] == {"r1": "finished", "r2": "interrupted"}
    assert answer["same"]
    assert answer["first notice"] == "store_refuses"
    assert "nothing can be stored in" in answer["health"][0]
    assert "refused" not in answer, "the run was started"
    assert answer["code"] == 0
    assert {"r1", "r2"} <= set(answer["listed"])
    assert "nothing can be stored in" in answer["warned"]


def test_a_disk_that_fills_up_during_a_run_costs_nothing_that_was_acknowledged(answers: dict[str, Any]) -> None:
    answer = answers["filled_during_a_run"]
    assert len(answer["acknowledged"]) == 1
    assert answer["on the full disk"] == answer["afterwards"] == answer["acknowledged"]
    status, message = answer["end"]
    assert status == "interrupted"
    assert "nothing can be stored in" in message
    assert answer["status"] == "interrupted"
