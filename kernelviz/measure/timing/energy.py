"""Energy of a call: the board's energy counter over back-to-back calls, read when the counter changes."""

import time
from collections import deque
from collections.abc import Callable
from typing import Any, Protocol

import msgspec
import torch

from kernelviz.core import Device, Energy, EnergyCounterStill, NoEnergyCounter, Note
from kernelviz.hardware.telemetry import energy_joules, sm_clock_hz
from kernelviz.measure.session.contract import Stop
from kernelviz.measure.timing.kernels import captured
from kernelviz.measure.timing.timer import BoundLaunch

BEFORE_S, FOR_S = 0.5, 2.0
"""Seconds of the same load before, so that clock and temperature settle, and least seconds between the two readings."""
GRAPH_S = 2e-3
"""About the length of one graph of calls, so that the device never waits for the host's launches."""
MOST_CALLS = 1000
QUEUED_S = 0.1
"""Seconds of work in the device's queue while the driver is queried."""


class SteadyLoad(Protocol):
    """A load of many calls of one kind that keeps the device busy."""

    def fill(self) -> None:
        """Launch calls until the queue is full."""

    def done(self) -> int:
        """The number of calls that have ended by now."""


def energy(device: Device, bound_launch: BoundLaunch, call_s: float, stop: Stop) -> Energy | Note | None:
    """The energy of one unflushed call under its own steady load, or a note why there is none. None if stopped."""
    if device.kind != "cuda" or energy_joules(device) is None:
        return NoEnergyCounter(figure="energy")
    measured = energy_under_load(lambda: energy_joules(device), Load(bound_launch, call_s), stop)
    torch.cuda.synchronize()
    if not isinstance(measured, Energy):
        return measured
    return msgspec.structs.replace(measured, sm_clock_hz=sm_clock_hz(device))


def energy_under_load(
    read_joules: Callable[[], float | None],
    load: SteadyLoad,
    stop: Stop,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> Energy | Note | None:
    """The energy of one call of the load, from a counter of joules.

    The counter changes every few tens of milliseconds, so it is read at a change: the error of both ends is then at most the
    length of one graph.
    """
    until_s = clock() + BEFORE_S
    while clock() < until_s and not stop():
        load.fill()
        sleep(QUEUED_S / 4)
    ends: list[tuple[float, float, int]] = []
    last = read_joules()
    begun_s = clock()
    while not stop() and clock() - begun_s < 4 * FOR_S:  # ends also when the counter never changes
        load.fill()
        now = read_joules()
        if now is not None and last is not None and now != last:
            ends.append((clock(), now, load.done()))
            if ends[-1][0] - ends[0][0] >= FOR_S:
                break
        last = now
    if len(ends) < 2:
        return None if stop() else EnergyCounterStill(figure="energy", seconds=4 * FOR_S)
    (from_s, from_joules, from_calls), (to_s, to_joules, to_calls) = ends[0], ends[-1]
    counted = to_calls - from_calls
    return Energy(joules=(to_joules - from_joules) / counted, calls=counted, seconds=to_s - from_s)


class Load:
    """A steady load of one call, by graphs of several calls each.

    The queue always contains more work, because a query of the driver takes 20 ms and the device must not become idle.
    """

    def __init__(self, bound_launch: BoundLaunch, call_s: float) -> None:
        self.calls = max(1, min(MOST_CALLS, round(GRAPH_S / max(call_s, 1e-6))))
        self._deep = max(4, round(QUEUED_S / (self.calls * max(call_s, 1e-6))))
        self._replay, self._outputs = _graph_of(bound_launch, self.calls)
        self._waiting: deque[Any] = deque()
        self._done = 0

    def fill(self) -> None:
        """Launch graphs until the queue is full."""
        self.done()
        event: Any = torch.cuda.Event
        while len(self._waiting) < self._deep:
            self._replay()
            self._waiting.append(event())
            self._waiting[-1].record()

    def done(self) -> int:
        """The number of calls that have ended by now."""
        while self._waiting and self._waiting[0].query():
            self._waiting.popleft()
            self._done += self.calls
        return self._done


def _graph_of(bound_launch: BoundLaunch, calls: int) -> tuple[Callable[[], object], list[object]]:
    """A function that launches so many calls, as a graph where they can be captured, and the list that holds their outputs."""

    def launches() -> list[object]:
        return [bound_launch.launch() for _ in range(calls)]

    try:
        graph, outputs = captured(launches)
    except Exception:
        torch.cuda.synchronize()
        return launches, []
    return graph.replay, outputs
