"""The choice of the tracer: CUPTI, or torch.profiler (which uses CUPTI in another way) if CUPTI fails, or none if both fail."""

from collections.abc import Callable, Mapping
from types import MappingProxyType

import torch

from kernelviz.core import TracerFailure
from kernelviz.core.driver_operations import MEMCPY, MEMSET
from kernelviz.core.run import TracerFault, TracerName
from kernelviz.measure.timing.cupti import CuptiError, CuptiTracer
from kernelviz.measure.timing.trace import Record, Tracer

_FAULTS: Mapping[int, TracerFault] = MappingProxyType(
    {14: "other_cupti_version", 35: "cupti_not_allowed", 39: "other_profiler"}
)
"""Codes of CUPTI by what is wrong (CUPTI API reference, "CUptiResult": NOT_COMPATIBLE, INSUFFICIENT_PRIVILEGES,
MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED)."""
_VERSION_ERRORS = frozenset({"NotSupportedError", "FunctionNotFoundError"})
"""Exceptions of cuda.bindings and cupti-python, which may be missing, about a library of another version."""


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


def open_tracer() -> tuple[Tracer | None, tuple[TracerFailure, ...]]:
    """The best tracer that works on this machine, and why better ones do not work.

    The tracer is None if no tracer works. Times then come from events, which need no permission.
    """
    failures: list[TracerFailure] = []
    makers: tuple[tuple[TracerName, Callable[[], Tracer]], ...] = (
        ("cupti", CuptiTracer.shared),
        ("kineto", KinetoTracer),
    )
    for name, make in makers:
        try:
            tracer: Tracer = make()
            records = tracer.trace(lambda: torch.zeros(1024, device="cuda"))
        except Exception as error:
            failures.append(TracerFailure(tracer=name, fault=_fault(error), message=f"{type(error).__name__}: {error}"))
            continue
        if records:
            return tracer, tuple(failures)
        failures.append(TracerFailure(tracer=name, fault="nothing_traced"))
    return None, tuple(failures)


def _fault(error: Exception) -> TracerFault:
    if isinstance(error, CuptiError):
        return _FAULTS.get(error.code, "cupti_error")
    if isinstance(error, ImportError):
        return "no_cupti"
    return "other_cupti_version" if type(error).__name__ in _VERSION_ERRORS else "cupti_error"
