"""Start and end times of a pattern's calls on the device: by a tracer's records, or by events where there is no tracer."""

import itertools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from kernelviz.core import Timer
from kernelviz.measure.timing.kernels import Instruments
from kernelviz.measure.timing.trace import Iteration, TraceError, Tracer, iterations

ATTEMPTS = 3


class Pattern(Protocol):
    """The part of a captured call that stamps use: the number of calls in a graph, and the events of the calls."""

    samples: int
    graphs: tuple[Any, ...]
    events: dict[tuple[int, int], tuple[Any, Any]]


class Stamps(Protocol):
    """The source of a CUDA timer's times. `description` names it in the method line."""

    name: Timer
    description: str
    tracer: Tracer | None
    retraced: int

    def of(self, work: Callable[[], None], expected: Sequence[tuple[Pattern, int]]) -> list[list[Iteration]]:
        """Do the work, which replays or enqueues the expected calls in this order; return the iterations of each call.

        Errors: TraceError when the times cannot be those of the calls, WrongWork when the calls do not do their work.
        """

    def flush_length_s(self, instruments: Instruments) -> float:
        """How long one flush takes, seconds."""

    def begins(self, timed: Pattern, graph_index: int, number: int) -> None:
        """Called before this call of that graph is enqueued."""

    def ends(self, timed: Pattern, graph_index: int, number: int) -> None:
        """Called after that call was enqueued."""

    def replayed(self, timed: Pattern, graph_index: int) -> None:
        """Called after the pattern of that graph was launched once more."""


class TracedStamps:
    """Stamps from a tracer. A session whose records are not plausible is repeated."""

    def __init__(self, tracer: Tracer) -> None:
        self.tracer: Tracer | None = tracer
        self._tracer = tracer
        self.name: Timer = "cupti" if tracer.name == "cupti" else "kineto"
        self.description = {"cupti": "CUPTI kernel stamps", "kineto": "torch.profiler kernel stamps"}[self.name]
        self.retraced = 0

    def of(self, work: Callable[[], None], expected: Sequence[tuple[Pattern, int]]) -> list[list[Iteration]]:
        traced = iter(self._traced(work, sum(count for _, count in expected)))
        return [list(itertools.islice(traced, count)) for _, count in expected]

    def flush_length_s(self, instruments: Instruments) -> float:
        def work() -> None:
            for _ in range(3):
                instruments.flush()

        work()
        return min((r.end_ns - r.start_ns) / 1e9 for r in self._tracer.trace(work))

    def begins(self, timed: Pattern, graph_index: int, number: int) -> None:
        """Do nothing: the tracer's records contain the start and end of each call."""

    ends = begins

    def replayed(self, timed: Pattern, graph_index: int) -> None:
        """See `begins`."""

    def _traced(self, work: Callable[[], None], expected: int) -> list[Iteration]:
        for _ in range(ATTEMPTS - 1):
            try:
                return iterations(self._tracer.trace(work), expected)
            except TraceError:
                self.retraced += 1
        return iterations(self._tracer.trace(work), expected)
