"""Device time on a CUDA GPU: graphs of [restore; poison; flush; call; marker], replayed under the tracer.

Events round a call measure Python when the kernel is short (12 us read for under 2 us of work); the kernel's own start
and end stamps do not. The reasons and the figures: docs/measuring.md.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from statistics import median

import torch
from torch import Tensor

from kernelviz.core.errors import one_line
from kernelviz.core.result import Kernel, LaunchMode, Timer
from kernelviz.measure.faults import sticky
from kernelviz.measure.instruments import Instruments
from kernelviz.measure.tensors import as_tuple
from kernelviz.measure.timer import Place, Taken, Timed
from kernelviz.measure.trace import MAX_RECORDS, MEMCPY, Iteration, TraceError, Tracer, iterations

BLOCK_S = 0.5e-3
"""Aim of one block: long enough to average out single calls, short enough for ten blocks in 30 ms with their records."""
MAX_SAMPLES = 12
"""cupti-python needs about 20 us a record and a sample has four of them, so more samples cost more than they tell."""
LOAD_S, WINDOW_S = 0.040, 0.200
"""Burst: at most this much load in any such window. 4096^3 bf16 meets the power cap after 0.1 s of load."""
GRAPHS = 5
"""Graphs of a call, each over other places; successive rounds replay successive graphs. Two cycles in ten blocks."""
PLACES_S = 0.25
"""Binding the call at other places ends after this time: a bind that tunes would be repeated for every one."""
TRIES = 3


class CudaTimed:
    """A captured call: graphs of `samples` iterations each, or the same pattern launched into the stream.

    The iterations go round the places at which the call is bound, graph by graph; the last one of the first graph is at
    the first place.
    """

    def __init__(self, instruments: Instruments, place: Place) -> None:
        self.instruments = instruments
        self.places = [place]
        self.samples = 1
        self.iteration_s = 0.0
        self.launch_mode: LaunchMode = "stream"
        self.kernels: tuple[Kernel, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.graphs: tuple[torch.cuda.CUDAGraph, ...] = ()
        self.first_cycles, self.last_cycles = instruments.cycles(), instruments.cycles()
        self.outputs: tuple[Tensor, ...] = as_tuple(place.launch())
        self.static = [t.data_ptr() for t in as_tuple(place.launch())] == [t.data_ptr() for t in self.outputs]
        # What a call writes where it does not allocate.
        self._written = [self.outputs] if self.static else []

    def add(self, place: Place) -> None:
        """One more place at which the call is bound."""
        self.places.append(place)
        outputs = as_tuple(place.launch())
        if self.static:
            self._written.append(outputs)

    def enqueue(self, samples: int, turn: int = 0) -> tuple[Tensor, ...]:
        """The pattern, `samples` times, into the current stream; returns the outputs of the last call."""
        tools = self.instruments
        outputs: tuple[Tensor, ...] = ()
        # A call that allocates gets the block that was poisoned and freed right before it, every time another one.
        spare = [] if self.static else [tuple(torch.empty_like(t) for t in self.outputs) for _ in range(samples)]
        kept: list[tuple[Tensor, ...]] = []
        for i in range(samples):
            at = (turn * samples + samples - 1 - i) % len(self.places)
            place = self.places[at]
            for tensor in spare[-1] if spare else self._written[at]:
                tools.poison(tensor)
            if place.restore is not None:
                place.restore()
            tools.flush(self.first_cycles if i == 0 else None)
            if spare:
                del tensor
                spare.pop()
            outputs = as_tuple(place.launch())
            kept.append(outputs)
            tools.marker(self.last_cycles if i == samples - 1 else None)
        return outputs

    def capture(self, samples: int, graphs: int) -> None:
        """Capture the pattern as graphs. Raises what the capture raises."""
        torch.cuda.synchronize()
        captured: list[torch.cuda.CUDAGraph] = []
        first: tuple[Tensor, ...] = ()
        for turn in range(graphs):
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                outputs = self.enqueue(samples, turn)
            # The other graphs' outputs stay in their own memory, which only they write.
            first = first or outputs
            captured.append(graph)
        self.graphs, self.outputs, self.samples, self.launch_mode = tuple(captured), first, samples, "graph"

    def use_stream(self, samples: int, note: str) -> None:
        self.graphs, self.samples, self.launch_mode = (), samples, "stream"
        self.notes = (*self.notes, note)

    def replay(self, turn: int = 0) -> None:
        if self.graphs:
            self.graphs[turn % len(self.graphs)].replay()
        else:
            self.outputs = self.enqueue(self.samples, turn)

    def run_once(self) -> tuple[Tensor, ...]:
        """Poison what the timed graph writes, replay it, wait, and return its outputs."""
        for tensor in self.outputs:
            self.instruments.poison(tensor)
        self.replay()
        torch.cuda.synchronize()
        return self.outputs


class CudaTimer:
    """Times captured calls on one GPU under one tracer."""

    def __init__(self, instruments: Instruments, tracer: Tracer) -> None:
        self.instruments, self.tracer = instruments, tracer
        self.name: Timer = "cupti" if tracer.name == "cupti" else "kineto"
        self._load: deque[tuple[float, float]] = deque()
        self.retraced = 0
        self._turn = 0
        self._flush_s = self._flush_length_s()

    def prepare(self, first: Place, others: Iterable[Place] = ()) -> CudaTimed:
        """Trace a few eager calls, choose the samples a block, capture; fall back to the stream where it must."""
        timed = CudaTimed(self.instruments, first)
        self.rest(WINDOW_S / 10)
        eager = self._traced(lambda: timed.enqueue(3), 3)
        # Not the eager period, which holds host gaps: flush, call, poison (at about 3 TB/s) and marker.
        written = sum(t.numel() * t.element_size() for t in timed.outputs)
        timed.iteration_s = median(i.span_s for i in eager) + self._flush_s + written / 3e12 + 2e-6
        samples = max(1, min(MAX_SAMPLES, round(BLOCK_S / timed.iteration_s)))
        begun = time.monotonic()
        for place in itertools.islice(others, GRAPHS * samples - 1):
            timed.add(place)
            if time.monotonic() - begun > PLACES_S:
                break
        names = eager[-1].names
        if MEMCPY in names:
            # The driver copies in another way inside a graph: 2 GiB at 2.5 instead of 4.2 TB/s, under the same name.
            note: str | None = "holds a copy by the driver, which is slower inside a graph: launched into the stream"
        else:
            note = self._captured(timed, samples, names)
        if note is not None:
            timed.use_stream(samples, note)
        final = self._traced(timed.replay, samples)
        if len({i.names for i in final}) > 1:
            timed.notes = (*timed.notes, "its calls did not all launch the same kernels")
        timed.kernels = _kernels(final)
        return timed

    def _captured(self, timed: CudaTimed, samples: int, names: tuple[str, ...]) -> str | None:
        """Capture as graphs; why it must go into the stream where it cannot, or where a graph would run other kernels."""
        try:
            timed.capture(samples, -(-len(timed.places) // samples))
        except Exception as error:
            if sticky(error):
                raise
            torch.cuda.synchronize()
            return f"not capturable as a graph ({one_line(error, 200)}): launched into the stream"
        if self._traced(timed.replay, samples)[-1].names != names:
            return "a graph would run other kernels than an eager call does: launched into the stream"
        return None

    def describe(self, timed: Timed) -> str:
        assert isinstance(timed, CudaTimed)
        tracer = {"cupti": "CUPTI kernel stamps", "kineto": "torch.profiler kernel stamps"}[self.tracer.name]
        where = "in graphs" if timed.launch_mode == "graph" else "launched into the stream"
        places = f" at {len(timed.places)} places in memory" if len(timed.places) > 1 else ""
        return f"{tracer}, L2 flushed by reading before each of {timed.samples} calls{places} {where}"

    @property
    def worn(self) -> str | None:
        seen = self.tracer.records_seen
        return f"the tracer has seen {seen} records" if seen > MAX_RECORDS else None

    def flush(self) -> None:
        self.instruments.flush()

    def block_s(self, timed: Timed) -> float:
        assert isinstance(timed, CudaTimed)
        return timed.iteration_s * timed.samples

    def collect(self, rounds: Sequence[Sequence[Timed]]) -> list[list[Taken]]:
        """Replay every call of every round in one tracing session, then cut the records apart."""
        flat = [t for r in rounds for t in r if isinstance(t, CudaTimed)]
        turns = [self._turn + i for i, r in enumerate(rounds) for _ in r]
        self._turn += len(rounds)
        cycles = torch.empty(
            (len(flat), 2, self.instruments.multiprocessors), dtype=torch.int64, device=self.instruments.device
        )

        def work() -> None:
            for row, timed in enumerate(flat):
                timed.replay(turns[row])
                cycles[row, 0].copy_(timed.first_cycles, non_blocking=True)
                cycles[row, 1].copy_(timed.last_cycles, non_blocking=True)

        load_s = sum(self.block_s(t) for t in flat)
        self.rest(load_s)
        found = self._traced(work, sum(t.samples for t in flat))
        self._load.append((time.monotonic(), load_s))
        counted = cycles.tolist()
        taken: list[Taken] = []
        at = 0
        for row, timed in enumerate(flat):
            mine = found[at : at + timed.samples]
            at += timed.samples
            taken.append(
                Taken(
                    [i.span_s for i in mine],
                    [i.busy_s for i in mine],
                    mine[0].flush_end_ns / 1e9,
                    _clock_hz(counted[row], mine[-1].marker_end_ns - mine[0].flush_end_ns),
                )
            )
        ends = iter(taken)
        return [[next(ends) for _ in r] for r in rounds]

    def rest(self, coming_s: float) -> None:
        """Wait until `coming_s` more load keeps the last WINDOW_S within LOAD_S."""
        while True:
            now = time.monotonic()
            while self._load and self._load[0][0] < now - WINDOW_S:
                self._load.popleft()
            if not self._load or sum(s for _, s in self._load) + coming_s <= LOAD_S:
                return
            time.sleep(max(self._load[0][0] + WINDOW_S - now, 1e-3))

    def _flush_length_s(self) -> float:
        def work() -> None:
            for _ in range(3):
                self.instruments.flush()

        work()
        return min((r.end_ns - r.start_ns) / 1e9 for r in self.tracer.trace(work))

    def _traced(self, work: Callable[[], object], expected: int) -> list[Iteration]:
        for attempt in range(TRIES):
            records = self.tracer.trace(lambda: (work(), None)[1])
            try:
                return iterations(records, expected)
            except TraceError:
                self.retraced += 1
                if attempt == TRIES - 1:
                    raise
        raise AssertionError("unreachable")


def _clock_hz(cycles: Sequence[Sequence[int]], elapsed_ns: int) -> float | None:
    """Median over SMs of counted cycles over traced time. The counters are stored within 1 us of the stamps."""
    counts = [b - a for a, b in zip(cycles[0], cycles[1], strict=True) if a >= 0 and b > a]
    if not counts or elapsed_ns <= 0:
        return None
    return median(counts) / (elapsed_ns / 1e9)


def _kernels(found: Sequence[Iteration]) -> tuple[Kernel, ...]:
    """The kernels of the last call with their median duration over the iterations that launched the same ones."""
    last = found[-1]
    same = [i for i in found if i.names == last.names]
    return tuple(
        Kernel(
            name=demangled(record.name),
            duration_s=median((i.calls[k].end_ns - i.calls[k].start_ns) / 1e9 for i in same),
            grid=record.grid,
            block=record.block,
            registers_per_thread=record.registers,
            shared_memory_bytes=record.shared_bytes,
        )
        for k, record in enumerate(last.calls)
    )


def demangled(name: str) -> str:
    """A C++ kernel's readable name; other names as they are."""
    demangle = getattr(torch._C, "_demangle", None)
    return str(demangle(name)) if demangle is not None and name.startswith("_Z") else name
