"""Device activity as a tracer reports it, the grouping of records into iterations, and the source of a CUDA timer's times.

`tracers.open_tracer` chooses the tracer. Where there is none, times come from events (`events.py`).
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from kernelviz.core import Timer
from kernelviz.core.counters import END_MARKER
from kernelviz.core.driver_operations import MEMCPY, MEMSET
from kernelviz.core.reasons import Between, CachedOutput, OtherStream

FLUSH = "kernelviz_flush_l2"
BEFORE_FLUSH = ("kernelviz_replace_evict_last", "kernelviz_reset_priority")
"""The kernels of a flush before FLUSH, its last one, at whose end the time of a call begins."""
BEGIN = "kernelviz_begin_marker"
MARKER = END_MARKER
POISON = "kernelviz_poison"
EARLY_NS = 5_000
"""A call stamped as started this much before its flush ended did not wait for it."""
OVERLAP_NS = 1_000
"""By so much, a kernel in a graph can be stamped as started before the one that it waits for has ended."""
ATTEMPTS = 3
"""The maximum number of times that a session is traced if its records are not plausible."""
FLUSHES = 3
"""How many of them `flush_length_s` times."""
MAX_RECORDS = 5_000_000
"""A worker is replaced after this many records: bad stamps were reported after about 25 M graph records (parcagpu#23)."""


class Record(NamedTuple):
    """One kernel, memcpy or memset on the device. `stream` is the tracer's number of its stream; `local_bytes` is the local
    memory of one thread, including spilled registers.

    Stamps are integer nanoseconds of the tracer's clock: as float64 seconds since 1970 they would be rounded to 0.24 us.
    """

    name: str
    start_ns: int
    end_ns: int
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None
    stream: int | None = None
    local_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """The activity of one call on the device, between the flush (or begin marker) before it and the end marker after it."""

    flush_end_ns: int
    marker_end_ns: int
    calls: tuple[Record, ...]

    @property
    def span_s(self) -> float:
        """Last end - first start. Division instead of multiplication by 1e-9 keeps the numbers short in documents."""
        # Inside a graph a node's start stamp may lie up to 1 us before the end of the node that it depends on, because its
        # launch overlaps that node's tail (seen: start 832 ns early, duration 2.08 instead of 1.25 us). None of its instructions
        # can have run by then, so its time begins at the flush's end. This is why graph nodes read 0.1-0.5 us longer.
        start_ns = max(self.calls[0].start_ns, self.flush_end_ns)
        return (max(r.end_ns for r in self.calls) - start_ns) / 1e9

    @property
    def busy_s(self) -> float:
        """Time during which at least one of the call's kernels ran."""
        total, covered = 0, self.flush_end_ns
        for record in self.calls:
            total += max(0, record.end_ns - max(record.start_ns, covered))
            covered = max(covered, record.end_ns)
        return total / 1e9

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.calls)


class TraceError(Exception):
    """The records cannot be those of the calls that were made; the block is repeated."""


class WrongWork(TraceError):
    """The records are valid and show that the call does not do its work between its flush and its marker."""

    def __init__(self, reason: OtherStream | CachedOutput) -> None:
        self.reason = reason
        super().__init__(repr(reason))


def _nothing_inside(records: list[Record], opened: Record) -> OtherStream | CachedOutput:
    """Why a call launched nothing between its flush and its marker: it launched elsewhere, or not at all."""
    ours = (FLUSH, *BEFORE_FLUSH, BEGIN, MARKER, POISON, MEMCPY, MEMSET)
    streams = {r.stream for r in records} - {None}
    elsewhere = any(not r.name.startswith(ours) for r in records) or len(streams) > 1
    between: Between = "flush" if opened.name.startswith(FLUSH) else "markers"
    return OtherStream(evidence="outside", between=between) if elsewhere else CachedOutput(between=between)


class Tracer(Protocol):
    """Traces the device's activity while `work` runs and is synchronised."""

    name: str
    records_seen: int

    def trace(self, work: Callable[[], object]) -> list[Record]: ...


def iterations(records: list[Record], expected: int) -> list[Iteration]:
    """Group records into `expected` iterations. Raises TraceError when they cannot be those of the calls that were made."""
    grouped: list[Iteration] = []
    opened: Record | None = None
    flush_from_ns: int | None = None
    early: Record | None = None
    calls: list[Record] = []
    previous_end = 0
    for record in sorted(records, key=lambda r: r.start_ns):
        if not 0 < record.start_ns <= record.end_ns:
            raise TraceError(f"a record of {record.name} starts at {record.start_ns} and ends at {record.end_ns}")
        if record.name.startswith(BEFORE_FLUSH):
            flush_from_ns = record.start_ns if flush_from_ns is None else flush_from_ns
        elif record.name.startswith((FLUSH, BEGIN)):
            if opened is not None:
                raise TraceError("two flushes without an end marker between them")
            if early is not None:
                raise WrongWork(OtherStream(evidence="early", early_ns=record.end_ns - early.start_ns))
            if record.start_ns < previous_end - EARLY_NS:
                raise TraceError("a flush starts before the marker of the call before it has ended")
            opened, calls, flush_from_ns = record, [], None
        elif record.name.startswith(MARKER):
            if opened is None:
                raise TraceError("an end marker without a flush before it")
            if not calls:
                raise WrongWork(_nothing_inside(records, opened))
            if calls[0].start_ns < opened.end_ns - EARLY_NS:
                raise WrongWork(OtherStream(evidence="early", early_ns=opened.end_ns - calls[0].start_ns))
            last_ns = max(c.end_ns for c in calls)
            if last_ns > record.end_ns:
                raise WrongWork(OtherStream(evidence="late"))
            if last_ns <= opened.end_ns:  # an empty kernel, 0.7 us: the stamps err by up to 1 us (see Iteration.span_s)
                raise TraceError(f"a call ends {opened.end_ns - last_ns} ns before the flush that it waits for")
            grouped.append(Iteration(opened.end_ns, record.end_ns, tuple(calls)))
            opened, previous_end = None, record.end_ns
        elif opened is not None:
            calls.append(record)
        elif flush_from_ns is not None and record.start_ns > flush_from_ns + OVERLAP_NS:
            early = early or record
    if opened is not None:
        raise TraceError("a flush without an end marker behind it")
    if len(grouped) != expected:
        raise TraceError(f"{len(grouped)} calls were traced, {expected} were made")
    return grouped


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

    def flush_length_s(self, flush: Callable[[], None]) -> float:
        """The seconds that the kernels of one flush take, without waits for the host between them."""

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

    def flush_length_s(self, flush: Callable[[], None]) -> float:
        def work() -> None:
            for _ in range(FLUSHES):
                flush()

        work()
        records = (r for r in self._tracer.trace(work) if r.name.startswith((*BEFORE_FLUSH, FLUSH)))
        return sum(r.end_ns - r.start_ns for r in records) / 1e9 / FLUSHES

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
