"""Times without a tracer: CUDA events inside the graph round each call, minus the time of events round an empty kernel.

Events add a constant of 1.3 us (an empty pair) to 3.3 us (round an empty kernel, whose own duration is under a microsecond),
so the subtracted constant is measured in this process by the same pattern.
"""

from collections.abc import Callable, Sequence
from statistics import median
from typing import Any

import torch

from kernelviz.core import Timer
from kernelviz.measure.timing.kernels import Instruments, between_events_s, captured, empty_launch, timing_event
from kernelviz.measure.timing.trace import Iteration, Pattern, Record, TraceError, Tracer

EMPTY_KERNEL_S = 0.25e-6
"""The part of the empty kernel's own time that is added back. Its launch overlaps the flush's tail: with 0, twelve calls of
0.7 to 44 us read 0 to 0.51 us less than by CUPTI (H200), so half of that gives the smallest error in either direction."""
_SAMPLES = 12
_CALL = "call, by events"


class EventStamps:
    """Stamps from events. Each call of a graph has its own pair, which every replay records again."""

    name: Timer = "events"
    description = "CUDA events round each call, less those round an empty kernel"
    tracer: Tracer | None = None
    retraced = 0

    def __init__(self, instruments: Instruments) -> None:
        self._blocks: list[list[Iteration]] = []
        self._empty_s = self._round_an_empty_kernel_s(instruments)

    def begins(self, timed: Pattern, graph_index: int, number: int) -> None:
        self._pair(timed, graph_index, number)[0].record()

    def ends(self, timed: Pattern, graph_index: int, number: int) -> None:
        self._pair(timed, graph_index, number)[1].record()

    def replayed(self, timed: Pattern, graph_index: int) -> None:
        """Read the events before the next replay records them; the device idles between blocks, never inside one."""
        torch.cuda.synchronize()
        pairs = [self._pair(timed, graph_index, number) for number in range(timed.samples)]
        first = pairs[0][0]
        self._blocks.append([self._iteration(first, begun, ended) for begun, ended in pairs])

    def _iteration(self, first: Any, begun: Any, ended: Any) -> Iteration:
        """The call between two events, on the clock that begins with the `first` event of the block."""
        start_ns = round(first.elapsed_time(begun) * 1e6) + 1
        span_ns = round((begun.elapsed_time(ended) / 1e3 - self._empty_s + EMPTY_KERNEL_S) * 1e9)
        record = Record(_CALL, start_ns, start_ns + max(span_ns, 0))
        return Iteration(start_ns, round(first.elapsed_time(ended) * 1e6) + 1, (record,))

    def of(self, work: Callable[[], None], expected: Sequence[tuple[Pattern, int]]) -> list[list[Iteration]]:
        self._blocks = []
        work()
        blocks, self._blocks = self._blocks, []
        if [len(t) for t in blocks] != [count for _, count in expected]:
            raise TraceError(
                f"{sum(map(len, blocks))} calls were timed, {sum(count for _, count in expected)} were made"
            )
        return blocks

    def flush_length_s(self, flush: Callable[[], None]) -> float:
        return min(between_events_s(flush) for _ in range(5))

    def _pair(self, timed: Pattern, graph_index: int, number: int) -> tuple[Any, Any]:
        capturing = torch.cuda.is_current_stream_capturing()
        key = (graph_index if timed.graphs or capturing else -1, number)
        if key not in timed.events:
            timed.events[key] = timing_event(external=capturing), timing_event(external=capturing)
        return timed.events[key]

    def _round_an_empty_kernel_s(self, instruments: Instruments) -> float:
        launch = empty_launch()
        pairs = [(timing_event(external=True), timing_event(external=True)) for _ in range(_SAMPLES)]

        def work() -> None:
            for begun, ended in pairs:
                instruments.flush()
                begun.record()
                launch()
                ended.record()
                instruments.marker()

        graph, _ = captured(work)
        times_s: list[float] = []
        for _ in range(4):
            graph.replay()
            torch.cuda.synchronize()
            times_s += [begun.elapsed_time(ended) / 1e3 for begun, ended in pairs]
        return median(times_s)
