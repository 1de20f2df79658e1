"""Device time on a CUDA GPU: graphs of [restore; poison; flush; call; marker], replayed under the tracer.

Events round a call include Python's time when the kernel is short (12 us for under 2 us of work); the kernel's own start and
end stamps do not. docs/measuring.md has the reasons and the figures.
"""

import functools
import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from statistics import median
from typing import Any, TypeVar

import torch

from kernelviz.core import (
    DriverCopy,
    KernelsVary,
    NotCapturable,
    Note,
    OtherKernelsInGraph,
    Timer,
    TracingCostUnknown,
    TracingShortens,
)
from kernelviz.core.driver_operations import MEMCPY
from kernelviz.core.errors import one_line
from kernelviz.core.reasons import CachedOutput, OtherStream, PersistingL2
from kernelviz.measure.session.failures import sticky
from kernelviz.measure.timing.burst import Burst, Pace
from kernelviz.measure.timing.capture import CudaTimed, kernels_of
from kernelviz.measure.timing.events import EventStamps
from kernelviz.measure.timing.kernels import Instruments, captured, persisting_bytes
from kernelviz.measure.timing.timer import BlockSamples, BoundLaunch, Calls, Timed, raised_by_call
from kernelviz.measure.timing.trace import MAX_RECORDS, Iteration, Stamps, Tracer, WrongWork
from kernelviz.measure.timing.tracing_cost import TracingCost, shortened

T = TypeVar("T")
BLOCK_S = 0.25e-3
"""Target length of a block: ten blocks of seven series are 18 ms of load, so that two such problems fit into one burst."""
MAX_SAMPLES = 12
"""The maximum number of samples of a block. More blocks are better than longer ones, because its samples share an error."""
GRAPHS = 5
"""Graphs of a call, each over other buffers; successive rounds replay successive graphs, so ten blocks are two cycles."""
BUFFERS_S = 0.25
"""Binding the call to further buffers ends after this time, because a bind that tunes would be repeated for each of them."""
EAGER_CALLS = 3
"""Calls launched into the stream before the capture; a graph must run the same kernels."""
EVENTS_APART_NS = 3_300
"""What events round an empty kernel take beside the kernel (timing.events)."""
SHORT_S = 15e-6
"""Only calls of which the shortest takes less than this are launched alike. What a graph adds, up to
`metrics.verdicts.LAUNCHES_APART_S`, is 1 % of it."""
SHORTEST_NS = 300_000
"""Of calls by the host whose clock is measured."""
QUEUED_BLOCKS = 8
"""Blocks in the device's queue under steady load: the queue never runs dry, and a cancel takes effect within milliseconds."""


class CudaTimer:
    """Times captured calls on one GPU by a tracer's stamps, or by events where there is no `tracer`."""

    def __init__(self, instruments: Instruments, stamps: Stamps) -> None:
        self.instruments, self.stamps = instruments, stamps
        self.name: Timer = stamps.name
        self.tracer: Tracer | None = stamps.tracer
        self._burst = Burst()
        self._graph_index = 0
        self._flush_s = stamps.flush_length_s(instruments.flush)

    def prepare(self, first: BoundLaunch, more: Iterable[BoundLaunch] = (), *, warm: bool = False) -> CudaTimed:
        """Trace a few eager calls, choose the samples per block and capture; where capture fails, launch into the stream."""
        timed = CudaTimed(self.instruments, first, self.stamps, warm=warm)
        timed.samples = EAGER_CALLS
        eager = self._once(timed)
        timed.span_s = median(i.span_s for i in eager)
        timed.iteration_s = self._iteration_s(timed, timed.span_s)
        self._burst.count(EAGER_CALLS * timed.iteration_s)
        samples = max(1, min(MAX_SAMPLES, round(BLOCK_S / timed.iteration_s)))
        begun = time.monotonic()
        for bound_launch in itertools.islice(more, GRAPHS * samples - 1):
            timed.add(bound_launch)
            if time.monotonic() - begun > BUFFERS_S:
                break
        final, note = self._captured(timed, samples, eager[-1].names)
        if note is not None:
            timed.use_stream(samples, note)
            final = self._once(timed)
        if len({i.names for i in final}) > 1:
            timed.notes = (*timed.notes, KernelsVary())
        timed.kernels = kernels_of(final) if self.tracer is not None else ()
        return timed

    def refine(self, timed: Timed) -> None:
        assert isinstance(timed, CudaTimed)
        if self._cost is None:
            return
        bound_launch, added_s = timed.launches[0], None
        # Excluded: a call that changes its inputs (it would run on changed data), and a call outside a graph.
        if timed.launch_mode == "graph" and bound_launch.restore is None:
            cold_iteration_s = timed.iteration_s / 2 + self._flush_s if timed.warm else timed.iteration_s
            added_s = self._cost.adds_s(bound_launch, cold_iteration_s, timed.span_s)
        if added_s is None:
            timed.notes = (*timed.notes, TracingCostUnknown())
        elif shortened(added_s, timed.span_s):
            timed.notes = (*timed.notes, TracingShortens(by_s=-added_s))
            timed.use_stamps(self._events)
        else:
            timed.correction_s = added_s

    def refine_like(self, timed: Timed, refined: Timed) -> None:
        assert isinstance(timed, CudaTimed)
        assert isinstance(refined, CudaTimed)
        timed.correction_s = refined.correction_s
        if refined.stamps is not timed.stamps and timed.launch_mode == "graph":
            timed.use_stamps(refined.stamps)

    def launch_alike(self, timed: Sequence[Timed], beside: Sequence[Timed] = ()) -> None:
        """See DeviceTimer. If one call has to be launched into the stream and the shortest takes less than SHORT_S, traced calls
        of one kernel are launched into the stream, too, unless a call in `beside` has times of graphs already."""
        fresh = [one for one in timed if isinstance(one, CudaTimed)]
        for one in fresh:
            one.in_stream = False
        around = [one for one in beside if isinstance(one, CudaTimed)]
        together = [*fresh, *around]
        short = min((one.span_s for one in together), default=SHORT_S) < SHORT_S
        if not short or all(one.launch_mode == "graph" for one in together):
            return
        if any(one.launch_mode == "graph" for one in around):
            return  # they have times of graphs already
        for one in fresh:
            # Between the kernels of one call, the stream would wait for the host.
            if one.launch_mode == "graph" and one.stamps.tracer is not None and len(one.kernels) == 1:
                one.in_stream = True

    def timer_of(self, timed: Timed) -> Timer:
        assert isinstance(timed, CudaTimed)
        return timed.stamps.name

    @functools.cached_property
    def _events(self) -> EventStamps:
        """For the calls that tracing shortens."""
        return EventStamps(self.instruments)

    @functools.cached_property
    def _cost(self) -> TracingCost | None:
        return None if self.tracer is None else TracingCost(self.instruments, self.tracer, self._burst)

    def _iteration_s(self, timed: CudaTimed, span_s: float) -> float:
        """The sum of an iteration's parts on the device; the eager period would include gaps of the host."""
        if timed.warm:
            return 2 * span_s + 4e-6
        written_bytes = sum(t.numel() * t.element_size() for t in timed.outputs)
        return span_s + self._flush_s + written_bytes / 3e12 + 2e-6

    def _captured(
        self, timed: CudaTimed, samples: int, names: tuple[str, ...]
    ) -> tuple[Sequence[Iteration], Note | None]:
        """The first replay of the captured call, or a note why the call must be launched into the stream.

        The reason is that the call cannot be captured or that a graph would run other kernels.
        """
        if MEMCPY in names:
            # The driver copies differently inside a graph: 2 GiB at 2.5 instead of 4.2 TB/s, under the same kernel name.
            return (), DriverCopy()
        try:
            timed.capture(samples, -(-len(timed.launches) // samples))
        except Exception as error:
            if sticky(error):
                raise
            torch.cuda.synchronize()
            return (), NotCapturable(error=one_line(raised_by_call(error), 200))
        try:
            replayed = self._once(timed)
        except WrongWork as error:
            if isinstance(error.reason, CachedOutput):  # its eager calls did launch something
                raise WrongWork(OtherStream(evidence="not_captured")) from error
            raise
        return (replayed, None) if replayed[-1].names == names else ((), OtherKernelsInGraph())

    def _once(self, timed: CudaTimed) -> Sequence[Iteration]:
        return self.stamps.of(timed.replay, [(timed, timed.samples)])[0]

    def calls(self, bound_launch: BoundLaunch) -> Calls:
        wait = torch.cuda.current_stream(self.instruments.device).synchronize
        try:
            graph, outputs = captured(bound_launch.launch)
        except Exception as error:
            if sticky(error):
                raise
            torch.cuda.synchronize()
            return Calls(bound_launch.launch, wait, bound_launch.restore, None, one_line(error, 200))

        def replay() -> object:
            graph.replay()
            return outputs

        return Calls(bound_launch.launch, wait, bound_launch.restore, replay)

    def refused(self) -> PersistingL2 | None:
        size_bytes = persisting_bytes()
        return PersistingL2(size_bytes=size_bytes) if size_bytes else None

    def describe(self, timed: Timed) -> str:
        assert isinstance(timed, CudaTimed)
        alike = " as a call beside it has to be" if timed.in_stream else ""
        where = "in graphs" if timed.launch_mode == "graph" else f"launched into the stream{alike}"
        rotation = f" at {len(timed.launches)} places in memory" if len(timed.launches) > 1 else ""
        before = "behind an untimed call of the same place" if timed.warm else "L2 flushed by reading"
        added_us = timed.correction_s * 1e6
        less = f", less {added_us:.2f} us that tracing adds" if added_us > 0 else ""
        return f"{timed.stamps.description}, {before} before each of {timed.samples} calls{rotation} {where}{less}"

    @property
    def worn(self) -> str | None:
        seen = 0 if self.tracer is None else self.tracer.records_seen
        return f"the tracer has seen {seen} records" if seen > MAX_RECORDS else None

    def flush(self) -> None:
        self.instruments.flush()

    def block_s(self, timed: Timed) -> float:
        assert isinstance(timed, CudaTimed)
        return timed.iteration_s * timed.samples

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[BlockSamples]]:
        """Replay every call of every round in one tracing session, then split the records by call. A batch whose clock fell
        because it had no rest before it is measured again behind one."""
        flat = [t for r in rounds for t in r if isinstance(t, CudaTimed)]
        graph_indices = [self._graph_index + i for i, r in enumerate(rounds) for _ in r]
        self._graph_index += len(rounds)
        load_s = sum(self.block_s(t) for t in flat)
        while True:
            rested = self._burst.begin([t.pace for t in flat], load_s)
            blocks = self._blocks(flat, graph_indices)
            clocks = [(t.pace, block.clock_hz) for t, block in zip(flat, blocks, strict=True)]
            if not self._burst.lost_clock(clocks, rested=rested):
                break
        ends = iter(blocks)
        return [[next(ends) for _ in r] for r in rounds]

    def sustain(self, timed: Timed, blocks: int, before_s: float, stop: Callable[[], bool]) -> list[BlockSamples]:
        assert isinstance(timed, CudaTimed)
        event: Any = torch.cuda.Event
        waiting: deque[Any] = deque()
        until_s = time.monotonic() + before_s
        while time.monotonic() < until_s:
            if stop():
                return []
            timed.replay(self._graph_index)
            self._graph_index += 1
            waiting.append(event())
            waiting[-1].record()
            if len(waiting) > QUEUED_BLOCKS:
                waiting.popleft().synchronize()
        # The device idles for 0.2 ms before the first block, a fiftieth of the time in which the clock control reacts.
        return self._blocks([timed] * blocks, list(range(self._graph_index, self._graph_index + blocks)))

    def _blocks(self, flat: Sequence[CudaTimed], graph_indices: Sequence[int]) -> list[BlockSamples]:
        shape = (len(flat), 2, self.instruments.multiprocessors)
        cycles = torch.empty(shape, dtype=torch.int64, device=self.instruments.device)

        def measured(rows: Sequence[int], stamps: Stamps) -> Iterable[tuple[int, Sequence[Iteration]]]:
            def work() -> None:
                for row in rows:
                    flat[row].replay(graph_indices[row])
                    cycles[row, 0].copy_(flat[row].first_cycles, non_blocking=True)
                    cycles[row, 1].copy_(flat[row].last_cycles, non_blocking=True)

            return zip(rows, stamps.of(work, [(flat[row], flat[row].samples) for row in rows]), strict=True)

        # What is timed by events comes after the session of the tracer, which would change it.
        by_stamps = {id(t.stamps): t.stamps for t in flat}
        iterations: dict[int, Sequence[Iteration]] = {}
        for stamps in by_stamps.values():
            iterations.update(measured([row for row, t in enumerate(flat) if t.stamps is stamps], stamps))
        traced = [iterations[row] for row in range(len(flat))]
        return [
            BlockSamples(
                [i.span_s - timed.correction_s for i in mine],
                # In proportion, so that the busy time never exceeds the span.
                [i.busy_s * (1 - timed.correction_s / i.span_s) for i in mine],
                mine[0].flush_end_ns / 1e9,
                _clock_hz(
                    counted, mine[-1].marker_end_ns - mine[0].flush_end_ns, traced=timed.stamps.tracer is not None
                ),
            )
            for timed, mine, counted in zip(flat, traced, cycles.tolist(), strict=True)
        ]

    def rest(self, coming_s: float) -> None:
        self._burst.rest(coming_s)

    def paced(self, pace: Pace, coming_s: float, work: Callable[[], T]) -> tuple[T, bool]:
        def timed() -> tuple[T, float | None]:
            before = self.instruments.clocks()
            result = work()
            after = self.instruments.clocks()
            return result, clock_between_hz(before.tolist(), after.tolist())

        return self._burst.paced(pace, coming_s, timed)

    def waits_s(self, coming_s: float) -> float:
        return self._burst.waits_s(coming_s)

    def discard(self) -> None:
        self._burst.discard()


def _clock_hz(cycles: Sequence[Sequence[int]], elapsed_ns: int, *, traced: bool) -> float | None:
    """The SM clock: median over SMs of counted cycles by the elapsed time.

    The counters are stored within 1 us of a tracer's stamps. Events lie up to EVENTS_APART_NS from them: by the events of a block
    of 0.13 ms, an H100 had 2,017 MHz, of at most 1,980. None where that could be more than 1 % of the time.
    """
    if not traced and elapsed_ns < 100 * EVENTS_APART_NS:
        return None
    counts = [b - a for a, b in zip(cycles[0], cycles[1], strict=True) if a >= 0 and b > a]
    return median(counts) / (elapsed_ns / 1e9) if counts and elapsed_ns > 0 else None


def clock_between_hz(before: Sequence[Sequence[int]], after: Sequence[Sequence[int]]) -> float | None:
    """The SM clock between two readings of `Instruments.clocks`: median over SMs. None for less than SHORTEST_NS, because the
    device's time may advance in steps of 1 us.

    >>> clock_between_hz([[1000, 0], [5, 0], [-1, -1]], [[793_000, 400_000], [792_005, 400_000], [7, 1]])
    1980000000.0
    >>> clock_between_hz([[1000, 0]], [[2000, 500]]) is None
    True
    """
    pairs = [(b[0] - a[0], b[1] - a[1]) for a, b in zip(before, after, strict=True) if min(*a, *b) >= 0]
    clocks = [cycles / ns * 1e9 for cycles, ns in pairs if ns >= SHORTEST_NS and cycles > 0]
    return median(clocks) if clocks else None
