"""The instrument's own CUDA kernels (flush, markers, poison) bound to one device, and graphs and events round calls."""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import torch
from torch import Tensor

from kernelviz.ops import Launch
from kernelviz.ops.kernels import nvrtc

T = TypeVar("T")
SOURCE = Path(__file__).parent / "kernels.cu"
FLUSH_SHARE = 2
"""The flush reads this many times the L2's size: once is not enough for a cache that does not evict strictly in order."""
REPLACED_SHARE = 0.5
"""Before that, it reads this share of the L2's size with the priority evict_last. On an H200, a quarter was enough for a kernel
that reads 16 KiB to 4 MiB with that priority (if it reads 16 MiB or more, no share makes a difference); a sixteenth left 0.1 us
at 4 MiB (docs/measuring.md, "Lines with the priority evict_last")."""
FLUSH_WAVES = 3
"""The flush has this many times the blocks that fit on the device at once, which changes the order in which the next kernel's
blocks are assigned to SMs. A grid that fits keeps the order: a process would then always have the same order, and an add of
2^20 takes 4.06-4.13 us depending on it (docs/measuring.md)."""
_THREADS = 512
LINE_BYTES = 128
"""Of the L2."""


class Instruments:
    """Flush, marker and poison for one device. Every method enqueues on torch's current stream and returns at once."""

    def __init__(self, device: torch.device, *, replaced_share: float = REPLACED_SHARE) -> None:
        properties = torch.cuda.get_device_properties(device)
        self.multiprocessors: int = properties.multi_processor_count
        self.l2_bytes: int = properties.L2_cache_size
        self.device = device
        self._flush = nvrtc.kernel(SOURCE, "kernelviz_flush_l2")
        self._replace = nvrtc.kernel(SOURCE, "kernelviz_replace_evict_last")
        self._reset = nvrtc.kernel(SOURCE, "kernelviz_reset_priority")
        self._marker = nvrtc.kernel(SOURCE, "kernelviz_end_marker")
        self._begin = nvrtc.kernel(SOURCE, "kernelviz_begin_marker")
        self._clocks = nvrtc.kernel(SOURCE, "kernelviz_clocks")
        self._poison = nvrtc.kernel(SOURCE, "kernelviz_poison")
        count = max(FLUSH_SHARE * self.l2_bytes, 2**20) // 16
        self._count = ctypes.c_longlong(count)
        replaced_lines = int(replaced_share * self.l2_bytes) // LINE_BYTES
        self._replaced_lines = ctypes.c_longlong(replaced_lines)
        self._replaced = ctypes.c_longlong(replaced_lines * LINE_BYTES // 16)
        # Bit patterns below 2^30: no OR of them is the guard, so the flush never writes.
        self._vectors = torch.randint(0, 2**30, (count * 4,), dtype=torch.int32, device=device)
        self._sink = torch.zeros(1, dtype=torch.int32, device=device)
        resident = self.multiprocessors * (properties.max_threads_per_multi_processor // _THREADS)
        self._grid = FLUSH_WAVES * resident
        self._guard = ctypes.c_uint(0xFFFFFFFF)
        _forbid_persisting_lines()

    def flush(self, cycles: Tensor | None = None) -> None:
        """Replace the lines that a call has read with the priority evict_last, and then read twice the L2. `cycles`: int64, one
        entry an SM, receives each SM's cycle counter at the end."""
        buffer, sink = self._vectors.data_ptr(), self._sink.data_ptr()
        nvrtc.launch(self._replace, self._grid, _THREADS, buffer, self._replaced, self._guard, sink)
        nvrtc.launch(self._reset, self._grid, _THREADS, buffer, self._replaced_lines)
        nvrtc.launch(
            self._flush, self._grid, _THREADS, buffer, self._count, self._guard, sink, _pointer(cycles)
        )  # fmt: skip

    def begin(self, cycles: Tensor | None = None) -> None:
        """Begin an iteration without a flush. It has as many blocks as the flush, so that it changes the order of blocks too."""
        nvrtc.launch(self._begin, self._grid, _THREADS, _pointer(cycles))

    def marker(self, cycles: Tensor | None = None) -> None:
        """End an iteration; one block an SM, so that every SM's counter is stored."""
        nvrtc.launch(self._marker, self.multiprocessors, 32, _pointer(cycles))

    def clocks(self) -> Tensor:
        """Of each SM its cycle counter and the device's time in ns, when the stream is here: (multiprocessors, 2), int64; -1
        where an SM stored none."""
        clocks = torch.full((self.multiprocessors, 2), -1, dtype=torch.int64, device=self.device)
        nvrtc.launch(self._clocks, self.multiprocessors, 32, clocks.data_ptr())
        return clocks

    def poison(self, tensor: Tensor) -> None:
        """Fill a contiguous tensor with 0xFF bytes. Others, which the check refuses, are left, because their memory may be a
        part of another tensor, or smaller than their number of elements."""
        if not tensor.is_contiguous():
            return
        size = tensor.numel() * tensor.element_size()
        blocks = max(1, min(self.multiprocessors * 4, -(-size // (16 * _THREADS))))
        nvrtc.launch(self._poison, blocks, _THREADS, tensor.data_ptr(), ctypes.c_longlong(size))

    def cycles(self) -> Tensor:
        """A tensor for one set of cycle counters; -1 where an SM stored none."""
        return torch.full((self.multiprocessors,), -1, dtype=torch.int64, device=self.device)


def empty_launch(*outputs: Tensor) -> Launch:
    """A launch of a kernel that does nothing; it returns these tensors as its outputs."""
    kernel = nvrtc.kernel(SOURCE, "kernelviz_empty")

    def launch() -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, 1, 32)
        return outputs

    return launch


def captured(work: Callable[[], T]) -> tuple[torch.cuda.CUDAGraph, T]:
    """A graph of what `work` enqueues, and what `work` returned. Raises what the capture raises.

    Restores the current stream even if the capture fails; `torch.cuda.graph` alone would leave its capture stream current.
    """
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.stream(torch.cuda.current_stream()), torch.cuda.graph(graph):
        result = work()
    return graph, result


def timing_event(*, external: bool = False) -> Any:
    """A CUDA event with a time. `external`: inside a graph it becomes its own node, which each replay records."""
    make: Any = torch.cuda.Event
    return make(enable_timing=True, external=external)


def between_events_s(work: Callable[[], object]) -> float:
    """The seconds between two events round some work."""
    first, last = timing_event(), timing_event()
    first.record()
    work()
    last.record()
    torch.cuda.synchronize()
    return float(first.elapsed_time(last)) / 1e3


def _pointer(tensor: Tensor | None) -> int:
    return 0 if tensor is None else tensor.data_ptr()


def _forbid_persisting_lines() -> None:
    """Set the limit of persisting L2 lines to 0 and reset existing ones, because they would survive the flush."""
    from cuda.bindings import runtime

    limit: Any = runtime.cudaLimit.cudaLimitPersistingL2CacheSize
    runtime.cudaDeviceSetLimit(limit, 0)
    runtime.cudaCtxResetPersistingL2Cache()


def persisting_bytes() -> int:
    """The current limit of persisting L2 lines in bytes; a limit above 0, which a call has set, is reset to 0."""
    from cuda.bindings import runtime

    limit: Any = runtime.cudaLimit.cudaLimitPersistingL2CacheSize
    _, size_bytes = runtime.cudaDeviceGetLimit(limit)
    if size_bytes:
        _forbid_persisting_lines()
    return int(size_bytes)
