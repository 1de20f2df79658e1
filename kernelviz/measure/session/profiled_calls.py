"""Calls for a profiler: between cudaProfilerStart and cudaProfilerStop there is nothing but the call."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from kernelviz.measure.timing.cuda import CudaTimer
from kernelviz.measure.timing.timer import BoundLaunch, DeviceTimer

AWAKE = 20
"""Flushes before each call: a profiler leaves the device idle between kernels, and then its clock is lower for a while."""


def call_profiled(timer: DeviceTimer, bound_launch: BoundLaunch, calls: int) -> None:
    """Call a bound variant so many times, each time with flushed caches."""
    for _ in range(calls):
        bound_launch.restore_inputs()
        for _ in range(AWAKE if isinstance(timer, CudaTimer) else 1):
            timer.flush()
        with _profiler_range(timer):
            bound_launch.launch()


def mark_end(timer: DeviceTimer) -> None:
    """Launch the end marker inside of the profiler's range, so that the output of a profiler can be divided into cases."""
    if isinstance(timer, CudaTimer):
        with _profiler_range(timer):
            timer.instruments.marker()


@contextmanager
def _profiler_range(timer: DeviceTimer) -> Iterator[None]:
    """Profile only the launches inside this context. Without a profiler this has no effect but to wait for the device."""
    if not isinstance(timer, CudaTimer):
        yield
        return
    torch.cuda.synchronize()
    torch.cuda.profiler.start()  # type: ignore[no-untyped-call]
    yield
    torch.cuda.synchronize()
    torch.cuda.profiler.stop()  # type: ignore[no-untyped-call]
