"""The energy of a call, on instruments whose readings are known; and the rests of calls that the host times."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
import sample_runs as samples

from kernelviz.core.notes import EnergyCounterStill, Note
from kernelviz.core.problem import USUAL_FIGURES, FigureName, Method
from kernelviz.core.result import Accuracy, Energy, Kernel, PeakMemory, Preparation
from kernelviz.core.run import Device
from kernelviz.measure.session.binding import BoundVariant
from kernelviz.measure.timing.burst import LEAST_RESTED, Pace
from kernelviz.measure.timing.energy import FOR_S, energy_under_load
from kernelviz.measure.timing.secondary import CALL_BLOCKS, SecondaryTimings
from kernelviz.measure.timing.timer import BlockSamples, BoundLaunch, Calls, DeviceTimer
from kernelviz.ops import catalogue

T = TypeVar("T")
CALL_S, POWER_W = 4e-3, 500.0
WARM_S = 3e-6


class Board:
    """A GPU that runs calls of CALL_S without a pause at POWER_W. Its counter changes every 50 ms, and a query takes 20 ms."""

    def __init__(self, *, still: bool = False) -> None:
        self.now_s, self.still = 0.0, still

    def clock(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds

    def joules(self) -> float:
        self.now_s += 0.02
        return 0.0 if self.still else POWER_W * int(self.now_s / 0.05) * 0.05

    def fill(self) -> None: ...

    def done(self) -> int:
        return int(self.now_s / CALL_S)


def test_the_energy_of_a_call_is_power_times_its_time() -> None:
    board = Board()
    found = energy_under_load(board.joules, board, lambda: False, board.clock, board.sleep)
    assert isinstance(found, Energy)
    assert found.joules == pytest.approx(POWER_W * CALL_S, rel=0.03)
    assert found.seconds >= FOR_S
    assert found.calls == pytest.approx(found.seconds / CALL_S, rel=0.01)


def test_a_counter_that_does_not_change_is_named_and_a_stop_has_no_energy() -> None:
    board = Board(still=True)
    found = energy_under_load(board.joules, board, lambda: False, board.clock, board.sleep)
    assert found == EnergyCounterStill(figure="energy", seconds=4 * FOR_S)
    assert energy_under_load(board.joules, board, lambda: True, board.clock, board.sleep) is None


class Timed:
    launch_mode = "graph"
    notes = ()
    correction_s = 0.0
    kernels = (Kernel(name="k", duration_s=WARM_S),)

    def __init__(self) -> None:
        self.launches = [BoundLaunch(tuple)]


class Timer(DeviceTimer):
    """A GPU's timer that takes WARM_S for each warm call."""

    name = "cupti"

    def calls(self, bound_launch: BoundLaunch) -> Calls:
        return Calls(bound_launch.launch, lambda: None)

    def prepare(self, first: object, more: object, *, warm: bool) -> Timed:
        return Timed()

    def describe(self, timed: Timed) -> str:
        return "known"

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        return [BlockSamples([WARM_S] * 4, [WARM_S] * 4, 0.01 * i) for i in range(blocks)]


@pytest.mark.parametrize("figures", [(*USUAL_FIGURES[1:], "energy"), ("energy",)])
def test_energy_is_measured_under_sustained_load_with_the_length_of_the_call(figures: tuple[FigureName, ...]) -> None:
    """Without a warm time, the length is that of the kernels: a load that is too short would leave the device idle."""
    given: list[float] = []
    reported: list[str] = []

    def meter(device: Device, bound_launch: BoundLaunch, call_s: float, stop: object) -> Energy | Note | None:
        given.append(call_s)
        return Energy(joules=0.021, calls=1000, seconds=2.0)

    def progress(fraction: float, only: BoundVariant | None = None) -> None:
        reported.extend([only.variant.name] if only is not None else [])

    state: Any = SimpleNamespace(device=samples.H200, timer=Timer())
    watch: Any = SimpleNamespace(look=lambda: False)
    timed: Any = Timed()
    right = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.0)
    memory = PeakMemory(bind_bytes=0, call_bytes=0)
    ready = [
        BoundVariant(catalogue()["matmul"].variant_named(name), timed, Preparation(), right, memory)
        for name in ("torch_eager", "triton_grouped")
    ]
    method = Method(clock="sustained", load_s=0.0, figures=figures)
    secondary = SecondaryTimings(state, method, lambda: False, progress, watch, measure_energy=meter)
    found = secondary.take(ready, "torch_eager")
    assert [timing.energy for timing in found.values()] == [Energy(joules=0.021, calls=1000, seconds=2.0)] * 2
    assert given == pytest.approx([WARM_S] * 2)
    assert all(t.call_eager_s is None and t.loop_s is None and t.call_graph_s is None for t in found.values())
    # Each case is reported by itself, so that many cases of some seconds each do not look like silence of the worker.
    assert reported == ["torch_eager", "triton_grouped"]


class FallingClock(Timer):
    """The clock of each kind of calls is learnt by three batches behind a rest. The next three follow none; in the fourth the
    clock has fallen, so it is measured again behind a rest, as are all later ones."""

    def __init__(self) -> None:
        self.batches: dict[int, int] = {}

    def paced(self, pace: Pace, coming_s: float, work: Callable[[], T]) -> tuple[T, bool]:
        number = self.batches[id(pace)] = self.batches.get(id(pace), 0) + 1
        pace.needs_rests = number > LEAST_RESTED + 3
        return work(), not LEAST_RESTED < number <= LEAST_RESTED + 3


def test_calls_before_a_fall_of_the_clock_was_noticed_do_not_count_if_the_device_had_not_rested() -> None:
    timer = FallingClock()
    state: Any = SimpleNamespace(device=samples.H200, timer=timer)
    watch: Any = SimpleNamespace(look=lambda: False)
    timed: Any = Timed()
    right = Accuracy(passed=True, relative_l2=0.0, max_abs=0.0, worst_of_bound=0.0)
    variant = catalogue()["matmul"].variant_named("torch_eager")
    ready = [BoundVariant(variant, timed, Preparation(), right, PeakMemory(bind_bytes=0, call_bytes=0))]
    method = Method(figures=("call", "loop"), budget_s=10.0)
    secondary = SecondaryTimings(state, method, lambda: False, lambda fraction, only=None: None, watch)
    timing = secondary.take(ready, "torch_eager")["torch_eager"]
    first, *kinds = timer.batches.values()
    assert first == 1, "an idle device begins at another clock, so the first calls of all have a pace of their own"
    assert kinds == [LEAST_RESTED + 3 + CALL_BLOCKS] * 2
    for figure in (timing.call_eager_s, timing.enqueue_s, timing.loop_s):
        assert figure is not None
        assert figure.blocks is not None
        assert figure.samples is not None
        assert len(figure.blocks) == CALL_BLOCKS
        assert sum(block.size for block in figure.blocks) == len(figure.samples)
