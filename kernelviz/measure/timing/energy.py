"""What a call takes from the board: its energy counter over calls back to back, read at the moments when it moves."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable
from typing import Any

import torch

from kernelviz.core.notes import EnergyCounterStill, NoEnergyCounter, Note
from kernelviz.core.result import Energy
from kernelviz.core.run import Device
from kernelviz.hardware.telemetry import energy_joules, sm_clock_hz
from kernelviz.measure.timing.timer import BoundLaunch

BEFORE_S, FOR_S = 0.5, 2.0
"""The same load before, so that clock and temperature have settled, and the least time between two readings."""
GRAPH_S = 2e-3
"""Calls in one graph last about this long: launching them costs the host nothing that the device would wait for."""
MOST_CALLS = 1000
QUEUED_S = 0.1
"""So much work lies in the device's queue while the driver is asked."""


def energy(device: Device, bound_launch: BoundLaunch, call_s: float, stop: Callable[[], bool]) -> Energy | Note | None:
    """Energy of one call, unflushed, under steady load of it; or a note why there is none; None when stopped.

    The counter moves every few tens of milliseconds, so it is read at the moment of a change: both ends then are as sharp as
    one graph is long.
    """
    if device.kind != "cuda" or energy_joules(device) is None:
        return NoEnergyCounter(figure="energy")
    load = Load(bound_launch, call_s)
    until_s = time.monotonic() + BEFORE_S
    while time.monotonic() < until_s and not stop():
        load.fill()
        time.sleep(QUEUED_S / 4)
    ends: list[tuple[float, float, int]] = []
    last = energy_joules(device)
    begun_s = time.monotonic()
    while not stop() and time.monotonic() - begun_s < 4 * FOR_S:  # or a counter that does not move would hold us here
        load.fill()
        now = energy_joules(device)
        if now is not None and last is not None and now != last:
            ends.append((time.monotonic(), now, load.done()))
            if ends[-1][0] - ends[0][0] >= FOR_S:
                break
        last = now
    torch.cuda.synchronize()
    if len(ends) < 2:
        return None if stop() else EnergyCounterStill(figure="energy", seconds=4 * FOR_S)
    (from_s, from_joules, from_calls), (to_s, to_joules, to_calls) = ends[0], ends[-1]
    counted = to_calls - from_calls
    return Energy(
        joules=(to_joules - from_joules) / counted,
        calls=counted,
        seconds=to_s - from_s,
        sm_clock_hz=sm_clock_hz(device),
    )


class Load:
    """A device kept busy with one call, by graphs of some calls each. Asking the driver takes 20 ms, and the device must not
    wait for it: there is always more work in its queue."""

    def __init__(self, bound_launch: BoundLaunch, call_s: float) -> None:
        self.calls = max(1, min(MOST_CALLS, round(GRAPH_S / max(call_s, 1e-6))))
        self._deep = max(4, round(QUEUED_S / (self.calls * max(call_s, 1e-6))))
        self._replay, self._outputs = _graph_of(bound_launch, self.calls)
        self._waiting: deque[Any] = deque()
        self._done = 0

    def fill(self) -> None:
        """Launch until the queue is full again."""
        self.done()
        event: Any = torch.cuda.Event
        while len(self._waiting) < self._deep:
            self._replay()
            self._waiting.append(event())
            self._waiting[-1].record()

    def done(self) -> int:
        """How many calls are done by now."""
        while self._waiting and self._waiting[0].query():
            self._waiting.popleft()
            self._done += self.calls
        return self._done


def _graph_of(bound_launch: BoundLaunch, calls: int) -> tuple[Callable[[], object], list[object]]:
    """What launches so many calls, as a graph where they can be captured, and their outputs."""
    graph = torch.cuda.CUDAGraph()
    outputs: list[object] = []
    try:
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            outputs.extend(bound_launch.launch() for _ in range(calls))
    except Exception:
        torch.cuda.synchronize()
        return lambda: [bound_launch.launch() for _ in range(calls)], outputs
    return graph.replay, outputs
