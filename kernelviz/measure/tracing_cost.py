"""What a tracer adds to a call: CUPTI stamps a kernel by code in each of its blocks, which makes some kernels longer.

Seen on an H200: a copy of 2^24 floats by 65,536 small blocks takes 48.8 us untraced (48.4 by ncu) and 53.5 us while it is
traced; softmax 8192 x 8192 by torch 5.6 us of 258; an add of 2^24 in 16-byte words nothing. So every captured call is run
traced and untraced, by events round whole graphs, and what tracing adds is taken off its samples.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from typing import Any

import torch

from kernelviz.measure.instruments import SOURCE, Instruments
from kernelviz.measure.timer import Place
from kernelviz.measure.trace import Tracer
from kernelviz.ops import nvrtc

GRAPH_S, MOST_CALLS = 1e-3, 20
"""One graph holds calls for about so long, so that the events' half microsecond falls on many of them."""
TRIES, MORE_TRIES = 7, 15
RESOLVED_S, DOUBT_S = 0.3e-6, 0.15e-6
"""Differences under the first are not told from none; within the second of it, more tries decide."""
_COVER = 8
"""Flushes ahead of a graph (0.2 ms): it lies in the queue as a whole before its first kernel runs."""


class TracingCost:
    """Measures it on one device, against what tracing adds to an empty kernel in the same pattern."""

    def __init__(self, instruments: Instruments, tracer: Tracer, rest: Callable[[float], None]) -> None:
        self._instruments, self._tracer, self._rest = instruments, tracer, rest
        empty = nvrtc.kernel(SOURCE, "kernelviz_empty")
        self._of_nothing_s = 0.0
        self._of_nothing_s = median(self._added(Place(lambda: _launched(empty)), MOST_CALLS, MORE_TRIES))

    def adds_s(self, place: Place, iteration_s: float) -> float | None:
        """Seconds by which a call in a graph is longer while it is traced; 0 where that does not show, None when memory is short.

        `iteration_s`: about how long flush and call take together.
        """
        calls = max(2, min(MOST_CALLS, round(GRAPH_S / iteration_s)))
        self._rest(2 * TRIES * calls * iteration_s)
        try:
            found = self._added(place, calls, TRIES)
            if abs(median(found) - RESOLVED_S) < DOUBT_S:
                self._rest(2 * MORE_TRIES * calls * iteration_s)
                found += self._added(place, calls, MORE_TRIES)
        except torch.OutOfMemoryError:  # another set of outputs may not fit
            return None
        added_s = median(found)
        return added_s if added_s > RESOLVED_S else 0.0

    def _added(self, place: Place, calls: int, tries: int) -> list[float]:
        """What tracing adds to one call, tried several times, beyond what it adds to an empty one."""
        graph = self._captured(place, calls)
        found = []
        for _ in range(tries):
            untraced_s = self._between_events_s(graph)
            traced: list[float] = []
            self._tracer.trace(lambda kept=traced: kept.append(self._between_events_s(graph)))  # type: ignore[misc]
            found.append((traced[0] - untraced_s) / calls - self._of_nothing_s)
        return found

    def _captured(self, place: Place, calls: int) -> torch.cuda.CUDAGraph:
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(calls):
                self._instruments.flush()
                place.launch()
                self._instruments.marker()
        graph.replay()
        torch.cuda.synchronize()
        return graph

    def _between_events_s(self, graph: torch.cuda.CUDAGraph) -> float:
        event: Callable[..., Any] = torch.cuda.Event
        begun, ended = event(enable_timing=True), event(enable_timing=True)
        for _ in range(_COVER):
            self._instruments.flush()
        begun.record()
        graph.replay()
        ended.record()
        torch.cuda.synchronize()
        return float(begun.elapsed_time(ended)) / 1e3


def _launched(kernel: Any) -> torch.Tensor:
    nvrtc.launch(kernel, 1, 32)
    return _NOTHING


_NOTHING = torch.empty(0)
