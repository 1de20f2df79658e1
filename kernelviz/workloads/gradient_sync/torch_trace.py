"""The spans of one step by torch.profiler: kernels of a GPU by CUPTI's stamps, or operators of a processor.

Kernels of NCCL (and what a planted delay spins) communicate, all others compute. On a processor, the records of gloo
communicate, and operators of torch compute; these records are of the host's clock.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile

from kernelviz.core.workload import Lane, Span

MOST_SPANS = 4000
_COMMUNICATION = ("nccldevkernel", "ncclkernel", "gloo:")
_ANNOTATIONS = ("nccl:", "profilerstep", "distributeddataparallel.", "optimizer.")
"""Names of ranges that Kineto may report beside the kernels inside of them."""
PLANTED = "spin_kernel"
"""The name in torch.cuda._sleep's kernel (aten/src/ATen/cuda/Sleep.cu)."""
_OPERATORS = ("aten::", "autograd::", "torch::autograd")


def lane_of(name: str, *, on_gpu: bool) -> Lane | None:
    """The lane of a record by its name; None if it belongs to neither.

    >>> lane_of("ncclDevKernel_AllReduce_Sum_f32_RING_LL(...)", on_gpu=True), lane_of("ampere_sgemm_128x64", on_gpu=True)
    ('communication', 'compute')
    >>> lane_of("gloo:all_reduce", on_gpu=False), lane_of("aten::mm", on_gpu=False), lane_of("c10d::allreduce_", on_gpu=False)
    ('communication', 'compute', None)
    """
    lower = name.lower()
    if lower.startswith(_ANNOTATIONS):
        return None
    if lower.startswith(_COMMUNICATION) or PLANTED in lower:
        return "communication"
    return "compute" if on_gpu or lower.startswith(_OPERATORS) else None


Stamps = Callable[[], list[tuple[int, int]]]


def traced(step: Callable[[], object], device: torch.device, stamped: Stamps = list) -> tuple[Span, ...]:
    """The spans of one call of `step`, with the earliest at 0 s. The device is idle before and after. `stamped`: begin and
    end, in nanoseconds since 1970, of exchanges that the profiler does not see."""
    on_gpu = device.type == "cuda"
    if on_gpu:
        torch.cuda.synchronize(device)
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    stamped()
    with profile(activities=[activity], acc_events=True) as profiler:
        step()
        if on_gpu:
            torch.cuda.synchronize(device)
    results: Any = profiler.profiler
    return spans_of(results.kineto_results.events(), stamped(), on_gpu=on_gpu)


def spans_of(events: Iterable[Any], stamps: Iterable[tuple[int, int]] = (), *, on_gpu: bool) -> tuple[Span, ...]:
    """The spans of Kineto's events, and of other exchanges."""
    records: list[tuple[int, int, Lane, str]] = [(*stamp, "communication", "delayed exchange") for stamp in stamps]
    for event in events:
        if (event.device_type().name == "CUDA") != on_gpu:
            continue
        lane = lane_of(event.name(), on_gpu=on_gpu)
        if lane is not None and event.duration_ns() > 0:
            records.append((event.start_ns(), event.start_ns() + event.duration_ns(), lane, event.name()))
    begin_ns = min((begin for begin, *_ in records), default=0)
    longest = sorted(records, key=lambda one: one[0] - one[1])[:MOST_SPANS]
    return tuple(
        Span(lane=lane, start_s=(begin - begin_ns) / 1e9, end_s=(end - begin_ns) / 1e9, name=name[:120])
        for begin, end, lane, name in sorted(longest)
    )
