"""When a session lets the compiler processes run: never while it takes a time. And what it does after a cancel."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import pytest

from kernelviz.core import CompiledAhead, Event, Method, Problem
from kernelviz.measure.compile_ahead.messages import DeviceFacts, UpcomingCases
from kernelviz.measure.compile_ahead.processes import Work
from kernelviz.measure.session.device_session import DeviceSession
from kernelviz.measure.session.environment import device_of
from kernelviz.measure.timing.host import HostTimed, HostTimer
from kernelviz.measure.timing.timer import BlockSamples, Timed
from kernelviz.ops import catalogue
from tests.sample_gpu_facts import H200

ADD = Problem(op="add", sizes={"n": 64}, dtype="fp32")
METHOD = Method(budget_s=0.01, figures=("cold", "warm", "call", "loop"))


class Compilers:
    """Processes that note what the session asks of them, in order."""

    def __init__(self) -> None:
        self.open = 0
        self.log: list[str] = []
        self.expected: list[Work] = []

    def begin(self, facts: DeviceFacts, plugins: tuple[str, ...]) -> None:
        assert (facts, plugins) == (H200, ("x.py",))

    def expect(self, run_id: str, work: Sequence[Work]) -> None:
        self.expected += work

    @contextmanager
    def running(self) -> Iterator[None]:
        self.open += 1
        self.log.append("run")
        try:
            yield
        finally:
            self.open -= 1

    def wait(self, work: Work, stop: Callable[[], bool], tell: Callable[[CompiledAhead], None]) -> None:
        self.log.append(f"wait for {work[1]}")

    def cancel(self) -> None:
        self.log.append("cancel")


class WatchedTimer(HostTimer):
    """Notes whether the compilers ran whenever a time was taken."""

    def __init__(self, compilers: Compilers) -> None:
        super().__init__(2**16)
        self.compilers, self.ran_at = compilers, list[int]()

    def prepare(self, *arguments: object, **keywords: object) -> HostTimed:
        self.ran_at.append(self.compilers.open)
        return super().prepare(*arguments, **keywords)  # type: ignore[arg-type]

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        self.ran_at.append(self.compilers.open)
        return super().collect(rounds)

    def calls(self, *arguments: object) -> object:  # type: ignore[override]
        self.ran_at.append(self.compilers.open)
        return super().calls(*arguments)  # type: ignore[arg-type]


@pytest.fixture
def compilers() -> Compilers:
    return Compilers()


def session_with(compilers: Compilers) -> tuple[DeviceSession, WatchedTimer]:
    timer = WatchedTimer(compilers)
    session = DeviceSession(device_of("cpu"), catalogue(), timer)
    session.compile_with(compilers, ("x.py",), H200)
    return session, timer


def measured(compilers: Compilers, method: Method, stops: Callable[[], bool] = lambda: False) -> WatchedTimer:
    session, timer = session_with(compilers)
    events: list[Event] = []
    session.compile_ahead("a run", [UpcomingCases(problem=ADD, variants=("torch_eager", "triton_block"))])
    session.measure(ADD, ("torch_eager",), "torch_eager", method, events.append, stops)
    return timer


def test_the_compilers_run_while_it_binds_and_checks_but_not_while_it_measures(compilers: Compilers) -> None:
    timer = measured(compilers, METHOD)
    assert len(timer.ran_at) > 3
    assert set(timer.ran_at) == {0}
    assert compilers.log == [
        "run",  # the inputs
        *("wait for torch_eager", "run", "run"),  # bind, check
    ]
    assert [name for _, name, _ in compilers.expected] == ["triton_block"]


def test_without_compilation_ahead_they_never_run(compilers: Compilers) -> None:
    measured(compilers, Method(budget_s=0.01, ahead=False))
    assert compilers.log == []


def test_a_cancelled_measurement_ends_the_compilations(compilers: Compilers) -> None:
    measured(compilers, METHOD, lambda: True)
    assert compilers.log[-1] == "cancel"
