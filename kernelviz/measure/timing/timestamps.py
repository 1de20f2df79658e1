"""When the calls of a pattern began and ended on the device: by a tracer's records, or by events where there is none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kernelviz.core.result import Timer
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.measure.timing.trace import Iteration, TraceError, Tracer, iterations

ATTEMPTS = 3


class Pattern(Protocol):
    """What stamps must know of a captured call: how many calls a graph holds, and where it keeps events of its own."""

    samples: int
    graphs: tuple[Any, ...]
    events: dict[tuple[int, int], tuple[Any, Any]]


class Stamps(Protocol):
    """The source of a CUDA timer's times. `words` name it for people."""

    name: Timer
    description: str
    tracer: Tracer | None
    retraced: int

    def of(self, work: Callable[[], None], expected: Sequence[tuple[Pattern, int]]) -> list[list[Iteration]]:
        """Do the work, which replays or enqueues these calls in this order; the iterations of each.

        Errors: TraceError when the times cannot be those of the calls, WrongWork when the calls do not do their work.
        """
        ...

    def flush_length_s(self, instruments: Instruments) -> float:
        """How long one flush takes, seconds."""
        ...

    def begins(self, timed: Pattern, graph_index: int, number: int) -> None:
        """The next thing in the stream is this call of that turn's graph."""
        ...

    def ends(self, timed: Pattern, graph_index: int, number: int) -> None:
        """The last thing in the stream was that call."""
        ...

    def replayed(self, timed: Pattern, graph_index: int) -> None:
        """The pattern of that turn was launched once more."""
        ...


class TracedStamps:
    """Stamps from a tracer. A session whose records cannot be right is repeated."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer: Tracer | None = tracer
        self._tracer = tracer
        self.name: Timer = "cupti" if tracer.name == "cupti" else "kineto"
        self.description = {"cupti": "CUPTI kernel stamps", "kineto": "torch.profiler kernel stamps"}[self.name]
        self.retraced = 0

    def of(self, work: Callable[[], None], expected: Sequence[tuple[Pattern, int]]) -> list[list[Iteration]]:
        traced = self._traced(work, sum(count for _, count in expected))
        cut: list[list[Iteration]] = []
        at = 0
        for _, count in expected:
            cut.append(traced[at : at + count])
            at += count
        return cut

    def flush_length_s(self, instruments: Instruments) -> float:
        def work() -> None:
            for _ in range(3):
                instruments.flush()

        work()
        return min((r.end_ns - r.start_ns) / 1e9 for r in self._tracer.trace(work))

    def begins(self, timed: Pattern, graph_index: int, number: int) -> None:
        """A tracer sees by itself where calls begin, where they end, and how often."""

    ends = begins

    def replayed(self, timed: Pattern, graph_index: int) -> None:
        """See `begins`."""

    def _traced(self, work: Callable[[], None], expected: int) -> list[Iteration]:
        for attempt in range(ATTEMPTS):
            try:
                return iterations(self._tracer.trace(work), expected)
            except TraceError:
                self.retraced += 1
                if attempt == ATTEMPTS - 1:
                    raise
        raise AssertionError("unreachable")
