"""The choice of the tracer: CUPTI, or torch.profiler (which uses CUPTI in another way) if CUPTI fails, or none if both fail."""

from collections.abc import Callable

import torch

from kernelviz.measure.timing.cupti import CuptiTracer
from kernelviz.measure.timing.trace import MEMCPY, MEMSET, Record, Tracer


class KinetoTracer:
    """Traces by torch.profiler's raw events: names and times only. The first session takes 2.5 s; memory grows with use."""

    name = "kineto"

    def __init__(self) -> None:
        self.records_seen = 0

    def trace(self, work: Callable[[], object]) -> list[Record]:
        """As CuptiTracer.trace; grid, registers and shared memory stay unknown."""
        from torch.profiler import ProfilerActivity, profile

        torch.cuda.synchronize()
        with profile(activities=[ProfilerActivity.CUDA], acc_events=True) as profiler:
            work()
            torch.cuda.synchronize()
        events = profiler.profiler.kineto_results.events()
        records = [
            Record(_plain_name(e.name()), e.start_ns(), e.start_ns() + e.duration_ns())
            for e in events
            if e.device_type().name == "CUDA"
        ]
        self.records_seen += len(records)
        return records


def _plain_name(name: str) -> str:
    """CUPTI's kind for Kineto's "Memcpy DtoD (Device -> Device)" and "Memset (Device)"; kernels' names as they are."""
    lower = name.lower()
    return MEMCPY if lower.startswith("memcpy") else MEMSET if lower.startswith("memset") else name


def open_tracer() -> tuple[Tracer | None, str]:
    """The best tracer that works on this machine, and a line with its name and why better ones do not work.

    The tracer is None and its name ``events`` if no tracer works. Times then come from events, which need no permission.
    """
    reasons: list[str] = []
    for make in (CuptiTracer.shared, KinetoTracer):
        try:
            tracer: Tracer = make()
            records = tracer.trace(lambda: torch.zeros(1024, device="cuda"))
        except Exception as error:
            reasons.append(f"{make.__qualname__}: {type(error).__name__}: {error}")
            continue
        if records:
            return tracer, "; ".join([tracer.name, *reasons])
        reasons.append(f"{make.__qualname__}: traced nothing")
    return None, "; ".join(["events", *reasons])
