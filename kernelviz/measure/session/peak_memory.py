"""The most memory that a variant takes beside its inputs, and what is allocated and reserved now, by the counters of torch's
allocators.

On a GPU, the caching allocator counts what is allocated. On a processor, torch's profiler records each allocation. Memory that
does not come from torch (local memory of a kernel, CUDA modules, a library that allocates for itself) is not counted.
"""

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import torch
from torch.autograd.profiler import profile

Returned = TypeVar("Returned")


class MemoryMeter(Protocol):
    """Counts from its creation: what is allocated then counts as nothing."""

    def peak(self, work: Callable[[], Returned]) -> tuple[Returned, int]:
        """What `work` returns, and the most bytes that were allocated at once while it ran. Raises what `work` raises."""


class CudaMemoryMeter:
    """Of one GPU, by the counters of its caching allocator, which count in blocks of 512 bytes."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._before_bytes = _counter(device, "allocated_bytes")

    def peak(self, work: Callable[[], Returned]) -> tuple[Returned, int]:
        torch.cuda.reset_peak_memory_stats(device=self._device)
        returned = work()
        return returned, max(0, _counter(self._device, "allocated_bytes", "peak") - self._before_bytes)


class HostMemoryMeter:
    """Of the processor, by the allocations and releases that torch's profiler records (less than 1 ms a call). What is released
    while no `work` runs still counts."""

    def __init__(self) -> None:
        self._allocated_bytes = 0

    def peak(self, work: Callable[[], Returned]) -> tuple[Returned, int]:
        recorder = profile(profile_memory=True)
        with _no_lines_of_profiler():
            recorder.__enter__()  # type: ignore[no-untyped-call]
        try:
            returned = work()
        finally:
            with _no_lines_of_profiler():
                recorder.__exit__(None, None, None)  # type: ignore[no-untyped-call]
        now_bytes = peak_bytes = self._allocated_bytes
        for change_bytes in _changes_bytes(recorder):
            now_bytes += change_bytes
            peak_bytes = max(peak_bytes, now_bytes)
        self._allocated_bytes = now_bytes
        return returned, max(0, peak_bytes)


Memory = Callable[[], tuple[int | None, int | None]]
"""A function that returns the bytes that are allocated and that are reserved now; None is unknown."""


def memory_now(device: torch.device) -> Memory:
    """A function that reads the memory that torch has given to tensors of this process on the device, and that it has reserved.
    On a processor, torch counts neither."""
    if device.type != "cuda":
        return lambda: (None, None)
    return lambda: (_counter(device, "allocated_bytes"), _counter(device, "reserved_bytes"))


def _counter(device: torch.device, name: str, moment: str = "current") -> int:
    """A counter of the caching allocator. torch.cuda.memory_allocated sorts all of its 160 counters first, which took 3 ms each
    time, ten times a case, on the host of an H200."""
    return int(torch.cuda.memory_stats_as_nested_dict(device)[name]["all"][moment])


def memory_meter(device: torch.device) -> MemoryMeter:
    """A meter of the device's memory that counts from now on."""
    return CudaMemoryMeter(device) if device.type == "cuda" else HostMemoryMeter()


def _changes_bytes(recorder: profile) -> Iterator[int]:
    """The sizes of all allocations (positive) and releases (negative) in the order of their times."""
    assert recorder.kineto_results is not None
    changes = [event for event in recorder.kineto_results.events() if event.name() == "[memory]"]
    for change in sorted(changes, key=lambda event: event.start_ns()):
        yield change.nbytes()  # type: ignore[attr-defined]


@contextmanager
def _no_lines_of_profiler() -> Iterator[None]:
    """Discard what is written to the process's stderr: torch 2.13 writes a line there whenever its profiler starts and stops."""
    sys.stderr.flush()
    stderr = os.dup(2)
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, 2)
        os.close(nothing)
        yield
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
