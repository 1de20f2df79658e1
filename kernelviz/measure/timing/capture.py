"""A call captured for timing: graphs of [poison; restore; flush; call; marker], or the same pattern in the stream."""

from collections.abc import Sequence
from functools import partial
from statistics import median
from typing import Any

import torch
from torch import Tensor

from kernelviz.core import Kernel, LaunchMode, Note
from kernelviz.measure.session.inputs import as_tuple
from kernelviz.measure.timing.burst import Pace
from kernelviz.measure.timing.kernels import Instruments, captured
from kernelviz.measure.timing.timer import BoundLaunch
from kernelviz.measure.timing.trace import Iteration, Stamps

BIG_BYTES = 16 * 2**20
"""Larger outputs cover so many addresses that a call may get the same block of memory every time."""


class CudaTimed:
    """A captured call: graphs of `samples` iterations each, or the same pattern launched into the stream.

    A cold iteration is [poison the outputs; restore; flush; call; end marker]. A warm iteration is [restore; call, untimed;
    begin marker; call; end marker], so that the caches contain the data that the call itself leaves there. The iterations of
    successive graphs rotate over `launches`, which use different buffers. The last iteration of the first graph uses the first
    launch.
    """

    def __init__(
        self, instruments: Instruments, bound_launch: BoundLaunch, stamps: Stamps, *, warm: bool = False
    ) -> None:
        self.instruments, self.stamps, self.warm = instruments, stamps, warm
        self.launches = [bound_launch]
        self.samples = 1
        self.iteration_s = 0.0
        self.span_s = 0.0
        """Span of an eager call, by the stamps."""
        self.correction_s = 0.0
        self.events: dict[tuple[int, int], tuple[Any, Any]] = {}
        """For times by events: the events of each call, by graph (-1: the stream) and number."""
        self.in_stream = False
        """Whether the captured call is launched into the stream all the same, as the calls beside it are."""
        self.pace = Pace()
        """What is known of the clock of its blocks."""
        self.kernels: tuple[Kernel, ...] = ()
        self.notes: tuple[Note, ...] = ()
        self.graphs: tuple[torch.cuda.CUDAGraph, ...] = ()
        self.first_cycles, self.last_cycles = instruments.cycles(), instruments.cycles()
        self.outputs: tuple[Tensor, ...] = as_tuple(bound_launch.launch())
        self.static = [t.data_ptr() for t in as_tuple(bound_launch.launch())] == [t.data_ptr() for t in self.outputs]
        self._big = sum(t.numel() * t.element_size() for t in self.outputs) >= BIG_BYTES
        # The tensors that a call writes, where it does not allocate them.
        self._written = [self.outputs] if self.static else []

    @property
    def captured(self) -> bool:
        return bool(self.graphs)

    @property
    def launch_mode(self) -> LaunchMode:
        return "graph" if self.captured and not self.in_stream else "stream"

    def add(self, bound_launch: BoundLaunch) -> None:
        """Add a launch of the same call that is bound to other buffers."""
        self.launches.append(bound_launch)
        outputs = as_tuple(bound_launch.launch())
        if self.static:
            self._written.append(outputs)

    def enqueue(self, samples: int, graph_index: int = 0) -> tuple[Tensor, ...]:
        """Enqueue the pattern `samples` times into the current stream; return the outputs of the last call."""
        outputs: tuple[Tensor, ...] = ()
        # A call that allocates gets the block that was poisoned and freed directly before it, another block each time.
        allocates = not (self.static or self.warm)
        spare = [self._like_outputs() for _ in range(samples)] if allocates and not self._big else []
        live_outputs: list[tuple[Tensor, ...]] = []
        for i in range(samples):
            at = (graph_index * samples + samples - 1 - i) % len(self.launches)
            first = self.first_cycles if i == 0 else None
            if self.warm:
                self._warmed(self.launches[at], first)
            elif self.static:
                self._flushed(self.launches[at], self._written[at], first)
            else:
                outputs = ()
                self._flushed(self.launches[at], spare.pop() if spare else self._like_outputs(), first)
            self.stamps.begins(self, graph_index, i)
            outputs = as_tuple(self.launches[at].called())
            self.stamps.ends(self, graph_index, i)
            if not self._big:
                live_outputs.append(outputs)
            self.instruments.marker(self.last_cycles if i == samples - 1 else None)
        return outputs

    def _like_outputs(self) -> tuple[Tensor, ...]:
        return tuple(torch.empty_like(t) for t in self.outputs)

    def _flushed(self, bound_launch: BoundLaunch, written: tuple[Tensor, ...], cycles: Tensor | None) -> None:
        for tensor in written:
            self.instruments.poison(tensor)
        bound_launch.restore_inputs()
        self.instruments.flush(cycles)

    def _warmed(self, bound_launch: BoundLaunch, cycles: Tensor | None) -> None:
        bound_launch.restore_inputs()
        bound_launch.called()
        bound_launch.restore_inputs()
        self.instruments.begin(cycles)

    def capture(self, samples: int, graphs: int) -> None:
        """Capture the pattern as graphs. Raises what the capture raises."""
        finished: list[torch.cuda.CUDAGraph] = []
        first: tuple[Tensor, ...] = ()
        for graph_index in range(graphs):
            graph, outputs = captured(partial(self.enqueue, samples, graph_index))
            # The outputs of the other graphs stay in their own memory, which only these graphs write.
            first = first or outputs
            finished.append(graph)
        self.graphs, self.outputs, self.samples = tuple(finished), first, samples

    def use_stamps(self, stamps: Stamps) -> None:
        """Take the times of the captured call from other stamps, which needs new graphs. Raises what the capture raises."""
        self.stamps = stamps
        self.capture(self.samples, len(self.graphs))

    def use_stream(self, samples: int, note: Note) -> None:
        self.graphs, self.samples = (), samples
        self.notes = (*self.notes, note)

    def replay(self, graph_index: int = 0) -> None:
        if self.launch_mode == "graph":
            graph_index %= len(self.graphs)
            self.graphs[graph_index].replay()
        else:
            outputs = self.enqueue(self.samples, graph_index)
            if not self.captured:
                self.outputs = outputs
        self.stamps.replayed(self, graph_index)

    def run_once(self) -> tuple[Tensor, ...]:
        """Poison what the timed graph writes, replay it, wait, and return its outputs. A captured call is in its graph again."""
        self.in_stream = False
        for tensor in self.outputs:
            self.instruments.poison(tensor)
        self.replay()
        torch.cuda.synchronize()
        return self.outputs


def kernels_of(iterations: Sequence[Iteration]) -> tuple[Kernel, ...]:
    """The kernels of the last call with their median duration over the iterations that launched the same ones."""
    last = iterations[-1]
    same = [i for i in iterations if i.names == last.names]
    return tuple(
        Kernel(
            name=demangled(record.name),
            duration_s=median((i.calls[k].end_ns - i.calls[k].start_ns) / 1e9 for i in same),
            grid=record.grid,
            block=record.block,
            registers_per_thread=record.registers,
            shared_memory_bytes=record.shared_bytes,
            local_memory_bytes=record.local_bytes,
        )
        for k, record in enumerate(last.calls)
    )


def demangled(name: str) -> str:
    """The demangled name of a C++ kernel; other names as they are."""
    demangle = getattr(torch._C, "_demangle", None)
    return str(demangle(name)) if demangle is not None and name.startswith("_Z") else name
