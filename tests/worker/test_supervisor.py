"""The supervisor with real worker processes: whatever a variant does, its own case fails and the others are measured."""

from __future__ import annotations

import dataclasses
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernelviz.core.events import CaseDone, CaseStep, DeviceBusy, Event, RoofDone, RunQueued, WorkerStarting
from kernelviz.core.problem import Method, Problem
from kernelviz.core.result import Failure, Figure, Result, Timing
from kernelviz.core.run import Environment
from kernelviz.core.tuning import Tuned
from kernelviz.text.failures import describe_failure
from kernelviz.worker.device_lock import DeviceLock
from kernelviz.worker.limits import Limits
from kernelviz.worker.protocol import TO_WORKER, Incoming, Measure, encode
from kernelviz.worker.request import Request, RequestEnd
from kernelviz.worker.supervisor import Supervisor
from tests.worker.sessions import DEVICE

SESSIONS = "tests.worker.sessions"
QUICK = Limits(step_s=1.5, check_s=1.5, cancel_s=0.7)


class Listener:
    """A sink that can be waited for."""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.environments: list[Environment] = []
        self.end: RequestEnd | None = None
        self.message = ""
        self._cancelled = False
        self._changed = threading.Condition()

    @property
    def cancelled(self) -> bool:
        return self._cancelled

    def cancel(self) -> None:
        self._cancelled = True

    def begun(self, environment: Environment) -> None:
        self.environments.append(environment)

    def tell(self, event: Event) -> None:
        with self._changed:
            self.events.append(event)
            self._changed.notify_all()

    def ended(self, end: RequestEnd, message: str) -> None:
        with self._changed:
            self.end, self.message = end, message
            self._changed.notify_all()

    def until(self, true: Callable[[], object]) -> None:
        with self._changed:
            assert self._changed.wait_for(true, 20), (self.events[-3:], self.end)

    def until_ended(self) -> None:
        self.until(lambda: self.end)

    def saw(self, kind: type) -> bool:
        return any(isinstance(e, kind) for e in self.events)

    @property
    def results(self) -> dict[str, Result]:
        return {e.result.variant: e.result for e in self.events if isinstance(e, CaseDone)}

    def failure(self, variant: str) -> Failure:
        outcome = self.results[variant].outcome
        assert isinstance(outcome, Failure), outcome
        return outcome


def problem(n: int = 1) -> Problem:
    return Problem(op="add", sizes={"n": n}, dtype="fp32")


def item(*variants: str, run: str = "run", owner: str = "", plugins: tuple[str, ...] = ()) -> tuple[Request, Listener]:
    sink = Listener()
    method = Method(budget_s=0.01)
    made = Request(
        run_id=run,
        owner=owner,
        sink=sink,
        problem=problem(),
        variants=variants,
        baseline=variants[0],
        method=method,
        plugins=plugins,
    )
    return made, sink


@pytest.fixture
def supervisor(tmp_path: Path) -> Iterator[Supervisor]:
    made = Supervisor(DEVICE, session=f"{SESSIONS}:open_session", limits=QUICK, lock_directory=tmp_path)
    yield made
    made.close()


def measured(supervisor: Supervisor, *variants: str) -> Listener:
    work, sink = item(*variants)
    supervisor.submit([work])
    sink.until_ended()
    assert sink.end == "finished"
    assert set(sink.results) == set(variants)
    return sink


def test_results_arrive_and_the_worker_stays(supervisor: Supervisor) -> None:
    first = measured(supervisor, "a", "b")
    second = measured(supervisor, "a", "twice")
    assert first.saw(WorkerStarting)
    assert not second.saw(WorkerStarting)
    assert first.environments[0].versions["pid"] == second.environments[0].versions["pid"]
    assert all(isinstance(r.outcome, Timing) for r in [*first.results.values(), *second.results.values()])
    steps = [e.step for e in first.events if isinstance(e, CaseStep)]
    assert steps == ["binding"] * 2 + ["checking"] * 2 + ["measuring"] * 2


@pytest.mark.parametrize(
    ("fault", "stage", "words"),
    [
        ("abort", "crash", ["SIGABRT", "about to abort"]),
        ("checking:abort", "crash", ["SIGABRT"]),
        ("segfault", "crash", ["SIGSEGV", "sessions.py"]),
        ("hang", "timeout", ["nothing was heard"]),
        ("checking:hang", "timeout", ["checking"]),
        ("out_of_memory", "out_of_memory", ["no memory left"]),
        ("raises", "crash", ["the session itself broke"]),
        ("forgotten", "crash", ["without a result"]),
    ],
)
def test_a_fault_costs_its_own_case_only(supervisor: Supervisor, fault: str, stage: str, words: list[str]) -> None:
    sink = measured(supervisor, "a", fault, "b")
    failure = sink.failure(fault)
    assert failure.stage == stage
    said = str(describe_failure(failure))
    assert all(w in said for w in words), said
    assert isinstance(sink.results["a"].outcome, Timing)
    assert isinstance(sink.results["b"].outcome, Timing)


def test_garbage_on_stdout_is_no_message(supervisor: Supervisor) -> None:
    sink = measured(supervisor, "garbage", "a")
    assert all(isinstance(r.outcome, Timing) for r in sink.results.values())
    assert supervisor.state().workers_started == 1


def test_what_is_not_finite_is_left_out(supervisor: Supervisor) -> None:
    outcome = measured(supervisor, "not_finite").results["not_finite"].outcome
    assert isinstance(outcome, Timing)
    assert outcome.device_cold_s is None
    assert outcome.busy_s is not None


def test_the_baseline_accompanies_what_is_measured_again(supervisor: Supervisor) -> None:
    """`a` has its result when the worker is replaced; the rounds that `b` shares with it are added to that result."""
    sink = measured(supervisor, "a", "out_of_memory", "b")
    shared = [figure_of(sink, name) for name in "ab"]
    assert [len(f.samples or ()) for f in shared] == [20, 10]
    assert len({b.round for b in shared[0].blocks or ()}) == 4


def figure_of(sink: Listener, variant: str) -> Figure:
    outcome = sink.results[variant].outcome
    assert isinstance(outcome, Timing)
    assert outcome.device_cold_s is not None
    return outcome.device_cold_s


def test_after_a_crash_a_worker_is_ready_at_once(supervisor: Supervisor) -> None:
    measured(supervisor, "abort")
    started = time.monotonic()
    measured(supervisor, "a")
    assert time.monotonic() - started < 2
    assert supervisor.state().workers_started == 2


def test_a_worker_that_cannot_start_says_why_and_is_not_started_for_every_problem(tmp_path: Path) -> None:
    for session, words in (("cannot_open", "no such device here"), ("dies_at_start", "SIGABRT")):
        made = Supervisor(DEVICE, session=f"{SESSIONS}:{session}", limits=QUICK, lock_directory=tmp_path)
        try:
            for _ in range(3):
                failure = measured(made, "a", "b").failure("b")
                assert failure.stage == "unavailable"
                assert words in str(describe_failure(failure))
            assert made.state().workers_started == 1
        finally:
            made.close()


def test_changed_plug_ins_and_changed_files_bring_a_new_worker(supervisor: Supervisor, tmp_path: Path) -> None:
    plugin = tmp_path / "mine.py"
    plugin.write_text("# one\n")
    reasons = []
    for change in (False, True, False):
        if change:
            plugin.write_text("# changed\n")
        work, sink = item("a", plugins=(str(plugin),))
        supervisor.submit([work])
        sink.until_ended()
        reasons += [e.reason for e in sink.events if isinstance(e, WorkerStarting)]
        assert sink.environments[0].versions["plugins"] == str(plugin)
    assert measured(supervisor, "a").saw(WorkerStarting)
    assert len(reasons) == 2
    assert "files" in reasons[1]


def test_cancel_of_what_runs_and_of_what_waits(supervisor: Supervisor) -> None:
    running, sink = item("until_cancelled", "a", run="one")
    waiting, other = item("a", run="two")
    supervisor.submit([running])
    sink.until(lambda: [e for e in sink.events if isinstance(e, CaseStep) and e.step == "measuring"])
    supervisor.submit([waiting])
    other.until(lambda: other.saw(RunQueued))
    assert supervisor.cancel("two") == [waiting]
    sink.cancel()
    assert supervisor.cancel("one") == []
    sink.until_ended()
    assert sink.end == "cancelled"
    assert {sink.failure(v).stage for v in ("until_cancelled", "a")} == {"cancelled"}
    assert not other.results
    measured(supervisor, "a")
    assert supervisor.state().workers_started == 1


def test_who_waited_behind_what_is_cancelled_is_told(supervisor: Supervisor) -> None:
    running, blocker = item("until_cancelled", run="blocker")
    supervisor.submit([running])
    blocker.until(lambda: blocker.saw(CaseStep))
    first, second = item("a", run="sweep")[0], item("b", run="sweep")[0]
    waiting, sink = item("a", run="point")
    supervisor.submit([first, second])
    supervisor.submit([waiting])
    assert [e.ahead for e in sink.events if isinstance(e, RunQueued)] == [3]
    assert supervisor.cancel("sweep") == [first, second]
    assert [e.ahead for e in sink.events if isinstance(e, RunQueued)] == [3, 1]
    blocker.cancel()


def test_what_has_failed_is_not_told_as_cancelled_while_its_later_figures_wait(
    supervisor: Supervisor, tmp_path: Path
) -> None:
    other = DeviceLock(DEVICE.uuid, tmp_path)
    assert other.acquire(lambda holder: None, lambda: False)
    work, sink = item("a", "crashed")
    supervisor.submit([dataclasses.replace(work, later=True, timed_variants=lambda: ("a",))])
    sink.until(lambda: sink.saw(DeviceBusy))
    sink.cancel()
    supervisor.cancel("run")
    sink.until_ended()
    assert (sink.end, set(sink.results)) == ("cancelled", {"a"})
    other.release()
    other.close()


def test_cancel_of_a_hang_kills_it(supervisor: Supervisor) -> None:
    work, sink = item("checking:hang", "a")
    supervisor.submit([work])
    sink.until(lambda: [e for e in sink.events if isinstance(e, CaseStep) and e.step == "checking"])
    sink.cancel()
    supervisor.cancel("run")
    sink.until_ended()
    assert sink.end == "cancelled"
    assert sink.failure("checking:hang").stage == "cancelled"


def test_people_take_turns(supervisor: Supervisor) -> None:
    first, blocker = item("until_cancelled", run="blocker", owner="ann")
    supervisor.submit([first])
    blocker.until(lambda: blocker.saw(CaseStep))
    order: list[str] = []
    sinks = []
    for owner, name in (("ann", "a1"), ("ann", "a2"), ("ann", "a3"), ("bob", "b1")):
        work, sink = item("v", run=name, owner=owner)
        sink.ended = lambda end, message, name=name: order.append(name)  # type: ignore[method-assign, misc]
        supervisor.submit([work])
        sinks.append(sink)
    assert [e.ahead for e in sinks[3].events if isinstance(e, RunQueued)] == [1]
    blocker.cancel()
    supervisor.cancel("blocker")
    last, end = item("v", run="last", owner="ann")
    supervisor.submit([last])
    end.until_ended()
    assert order == ["b1", "a1", "a2", "a3"]


def test_who_waits_for_the_device_is_told_who_holds_it(supervisor: Supervisor, tmp_path: Path) -> None:
    other = DeviceLock(DEVICE.uuid, tmp_path)
    assert other.acquire(lambda holder: None, lambda: False)
    work, sink = item("a")
    supervisor.submit([work])
    sink.until(lambda: sink.saw(DeviceBusy))
    assert "process" in next(e.holder for e in sink.events if isinstance(e, DeviceBusy))
    assert supervisor.state().state == "waiting"
    other.release()
    sink.until_ended()
    assert isinstance(sink.results["a"].outcome, Timing)
    other.close()


@pytest.mark.parametrize("measured_by_another", [False, True])
def test_a_worker_is_ready_before_the_first_request_unless_another_process_measures(
    tmp_path: Path, measured_by_another: bool
) -> None:
    other = DeviceLock(DEVICE.uuid, tmp_path)
    if measured_by_another:
        assert other.acquire(lambda holder: None, lambda: False)
    prepared = Supervisor(
        DEVICE, session=f"{SESSIONS}:open_session", limits=QUICK, lock_directory=tmp_path, prepare=True
    )
    try:
        if measured_by_another:
            work, sink = item("a")
            prepared.submit([work])
            sink.until(lambda: sink.saw(DeviceBusy))
            assert prepared.state().workers_started == 0
            other.release()
            sink.until_ended()
            assert sink.saw(WorkerStarting)
        else:
            until_s = time.monotonic() + 20
            while prepared.state().state != "ready":
                assert time.monotonic() < until_s
                time.sleep(0.01)
            assert not measured(prepared, "a").saw(WorkerStarting)
        assert prepared.state().workers_started == 1
    finally:
        prepared.close()
        other.close()


def test_calibration(supervisor: Supervisor) -> None:
    sink = Listener()
    supervisor.submit([Request(run_id="roofs", owner="", sink=sink)])
    sink.until_ended()
    assert sink.end == "finished"
    assert [e.roof.name for e in sink.events if isinstance(e, RoofDone)] == ["read", "copy"]


def test_a_sink_that_fails_ends_its_own_run_only(supervisor: Supervisor) -> None:
    work, sink = item("a")

    def full(event: Event) -> None:
        if isinstance(event, CaseDone):
            raise OSError("disk full")

    sink.tell = full  # type: ignore[method-assign]
    supervisor.submit([work])
    sink.until_ended()
    assert sink.end == "interrupted"
    assert "disk full" in sink.message
    measured(supervisor, "a")


def test_close_interrupts_what_runs_and_what_waits(tmp_path: Path) -> None:
    made = Supervisor(DEVICE, session=f"{SESSIONS}:open_session", limits=QUICK, lock_directory=tmp_path)
    running, sink = item("hang", run="one")
    waiting, other = item("a", run="two")
    made.submit([running, waiting])
    sink.until(lambda: [e for e in sink.events if isinstance(e, CaseStep) and e.step == "measuring"])
    made.close()
    assert (sink.end, other.end) == ("interrupted", "interrupted")
    assert not sink.results
    late, refused = item("a")
    made.submit([late])
    assert refused.end == "interrupted"


def test_configurations_reach_the_worker_also_in_a_second_try(supervisor: Supervisor) -> None:
    known = {"b": Tuned(configuration={"block": 256}, run_id="r1", source_digest="0" * 16)}
    work, sink = item("a", "abort", "b")
    supervisor.submit([dataclasses.replace(work, tuned=known)])
    sink.until_ended()
    assert sink.failure("abort").stage == "crash"
    assert (sink.results["b"].configuration, sink.results["b"].tuned_by) == ({"block": 256}, "r1")
    assert sink.results["a"].configuration is None


def test_a_long_line_is_searched_once() -> None:
    """A line that arrives in pieces: each byte is copied and searched a few times, not once a piece."""
    incoming = Incoming(TO_WORKER)
    piece = b" " * 4096
    began_s = time.process_time()
    for _ in range(8 * 2**20 // len(piece)):
        assert [*incoming.feed(piece)] == []
    assert time.process_time() - began_s < 0.5  # 0.02 s; 3.6 s when each piece searched the whole line


def test_a_request_with_configurations_is_read_as_it_was_written() -> None:
    known = {"b": Tuned(configuration={"block": 256}, run_id="r1")}
    asked = Measure(work_id=1, problem=problem(), variants=("a", "b"), baseline="a", method=Method(), tuned=known)
    assert [*Incoming(TO_WORKER).feed(encode(asked))] == [asked]
