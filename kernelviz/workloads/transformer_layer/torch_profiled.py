"""The kernels of a layer by torch.profiler, in a process of its own: it uses CUPTI by other callbacks than kernelviz's tracer."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from kernelviz.core.problem import Struct
from kernelviz.core.workload import AxisValue

if TYPE_CHECKING:
    from kernelviz.workloads.catalog import RankContext

CALLS = 20


class ProfilerRequest(Struct, frozen=True, kw_only=True):
    """Which layer is profiled. `values`: of the axes of the workload."""

    values: dict[str, AxisValue]
    compiled: bool
    seed: int


@dataclass(frozen=True, slots=True)
class ProfilerAnswer:
    """The names of the kernels of one call in their order, and the seconds of each of them in every call."""

    names: tuple[str, ...]
    calls_s: tuple[tuple[float, ...], ...]


def profile_layer(context: RankContext, arguments: Any) -> dict[str, Any]:
    """Profile calls of the layer, each behind a read of twice the last-level cache, and return a ProfilerAnswer as JSON.

    Some lines that the last call has read with the priority evict_last may still be in the cache, less than 200 KB."""
    import torch

    from kernelviz.workloads.transformer_layer.torch_build import build, call_of
    from kernelviz.workloads.transformer_layer.torch_inductor_groups import compile_layer

    request = msgspec.convert(arguments, ProfilerRequest)
    preset, call = call_of(request.values)
    with torch.no_grad():
        layer, x_TH = build(preset, call, context.torch_device, request.seed)
        run = compile_layer(layer, x_TH)[0] if request.compiled else layer
        for _ in range(3):
            run(x_TH)
        size = 2 * torch.cuda.get_device_properties(0).L2_cache_size
        cache = torch.zeros(size // 4, dtype=torch.int32, device=context.torch_device)
        mark = torch.zeros(1, dtype=torch.int32, device=context.torch_device)

        def flush() -> None:
            torch.amax(cache, 0, out=mark[0])
            torch.cuda.synchronize()

        def call_layer() -> None:
            flush()
            run(x_TH)
            torch.cuda.synchronize()

        flushes, events = _events(flush), _events(call_layer)
    of_flush, each = len(flushes) // CALLS, len(events) // CALLS
    if len(flushes) % CALLS or len(events) % CALLS:
        raise RuntimeError(f"torch.profiler saw {len(events)} kernels in {CALLS} equal calls")
    calls = [events[i * each + of_flush : (i + 1) * each] for i in range(CALLS)]
    names = [[e.name() for e in one] for one in calls]
    if any(one != names[0] for one in names):
        raise RuntimeError("torch.profiler saw other kernels in equal calls")
    return {"names": names[0], "calls_s": [[e.duration_ns() / 1e9 for e in one] for one in calls]}


def _events(call: Callable[[], None]) -> list[Any]:
    """What CALLS calls ran on the GPU, by start."""
    from torch.profiler import ProfilerActivity, profile

    call()
    with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiled:
        for _ in range(CALLS):
            call()
    events = [e for e in profiled.profiler.kineto_results.events() if e.device_type().name == "CUDA"]
    return sorted(events, key=lambda event: event.start_ns())
