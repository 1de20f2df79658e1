"""A worker whose processes compile ahead: progress arrives as events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernelviz.core import CaseDone, CompiledAhead, Event, Method, Problem
from kernelviz.measure.compile_ahead.messages import UpcomingCases
from kernelviz.worker.process import WorkerProcess
from kernelviz.worker.protocol import FromWorker, Hello, Measure, Open, ToWorker, WorkDone, WorkEvent

PLANTED = str(Path(__file__).parents[1] / "planted_compiling.py")
ADD = Problem(op="add", sizes={"n": 4096}, dtype="fp32")
MOST_S = 60.0
pytestmark = pytest.mark.xdist_group("compile-ahead")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[WorkerProcess]:
    pytest.importorskip("triton")
    folder = tmp_path_factory.mktemp("caches")
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("TRITON_CACHE_DIR", str(folder / "triton"))
        patched.setenv("KERNELVIZ_CACHE", str(folder / "nvrtc"))
        process = WorkerProcess()
        process.send(
            Open(
                session="tests.worker.compiling_session:open_session",
                device="cpu",
                plugins=(PLANTED,),
                compile_processes=1,
            )
        )
        assert isinstance(next_message(process), Hello)
        yield process
        process.end(10.0)


def next_message(process: WorkerProcess) -> FromWorker:
    message = process.receive(MOST_S)
    assert message is not None
    return message


def events_of(process: WorkerProcess, work: ToWorker) -> list[Event]:
    process.send(work)
    events: list[Event] = []
    while not isinstance(message := next_message(process), WorkDone):
        assert isinstance(message, WorkEvent), message
        events.append(message.event)
    return events


def measure(*variants: str, method: Method) -> Measure:
    return Measure(
        work_id=1,
        problem=ADD,
        variants=variants,
        baseline=variants[0],
        method=method,
        run_id="a run",
        upcoming=(UpcomingCases(problem=ADD, variants=variants),),
    )


def test_progress_arrives_and_the_results_are_as_ever(worker: WorkerProcess) -> None:
    """The Triton variant compiles ahead, and then fails in the worker, which has no GPU."""
    events = events_of(worker, measure("torch_eager", "triton_block", method=Method(budget_s=0.02)))
    last = [e for e in events if isinstance(e, CompiledAhead)][-1]
    assert last == CompiledAhead(compiled=1, total=1, processes=1)
    done = {e.result.variant: e.result.timing is not None for e in events if isinstance(e, CaseDone)}
    assert done == {"torch_eager": True, "triton_block": False}


def test_a_method_without_compilation_ahead_waits_for_nothing(worker: WorkerProcess) -> None:
    method = Method(budget_s=0.02, ahead=False)
    events = events_of(worker, measure("torch_eager", "compiles_for_a_second", method=method))
    assert not [e for e in events if isinstance(e, CompiledAhead)]
