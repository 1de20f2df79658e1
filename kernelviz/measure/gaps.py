"""By how much tracing widens the gap between two kernels of a graph.

While a tracer listens, the device also stores the stamps of every kernel, so one begins a little later behind another. It is
measured by graphs of empty kernels, one twice as long as the other: what one more kernel adds, by the tracer's own stamps
and, untraced, by events round the graph.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from statistics import mean, median
from typing import Any

import torch

from kernelviz.measure.instruments import SOURCE, Instruments
from kernelviz.measure.trace import Tracer
from kernelviz.ops import nvrtc

KERNELS = 64
TRIES, REPLAYS = 12, 8
"""The widening of one replay behind another is not that of the first: sessions hold as many as a measurement's do."""
_EMPTY = "kernelviz_empty"


@dataclass(frozen=True, slots=True)
class Slopes:
    """What one more empty kernel in a graph takes, seconds: by the tracer's stamps, and untraced."""

    traced_s: float
    untraced_s: float

    @property
    def widening_s(self) -> float:
        """What tracing adds to a gap; 0 where it does not show."""
        return max(0.0, self.traced_s - self.untraced_s)


def slopes(instruments: Instruments, tracer: Tracer) -> Slopes:
    """Measure both, some 20 ms of load. The device must be free of other work."""
    kernel = nvrtc.kernel(SOURCE, _EMPTY)
    graphs = [_graph(kernel, count) for count in (KERNELS, 2 * KERNELS)]
    traced = [_traced_s(instruments, tracer, graph) for graph in graphs]
    untraced = [median(_untraced_s(instruments, graph) for _ in range(TRIES)) for graph in graphs]
    return Slopes((traced[1] - traced[0]) / KERNELS, (untraced[1] - untraced[0]) / KERNELS)


def _graph(kernel: Any, count: int) -> torch.cuda.CUDAGraph:
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(count):
            nvrtc.launch(kernel, 1, 32)
    graph.replay()
    torch.cuda.synchronize()
    return graph


def _untraced_s(instruments: Instruments, graph: torch.cuda.CUDAGraph) -> float:
    event: Callable[..., Any] = torch.cuda.Event
    begun, ended = event(enable_timing=True), event(enable_timing=True)
    instruments.flush()  # the host is ahead by the time at which the graph begins
    begun.record()
    graph.replay()
    ended.record()
    torch.cuda.synchronize()
    return float(begun.elapsed_time(ended)) / 1e3


def _traced_s(instruments: Instruments, tracer: Tracer, graph: torch.cuda.CUDAGraph) -> float:
    def work() -> None:
        for _ in range(REPLAYS):
            instruments.flush()
            graph.replay()
            instruments.marker()

    spans: list[float] = []
    for _ in range(2):
        own: list[tuple[int, int]] = []
        for record in sorted(tracer.trace(work), key=lambda r: r.start_ns):
            if record.name.startswith(_EMPTY):
                own.append((record.start_ns, record.end_ns))
            elif own:
                spans.append((own[-1][1] - own[0][0]) / 1e9)
                own = []
    return mean(spans)
