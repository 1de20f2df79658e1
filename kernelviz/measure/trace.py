"""Device activity as a tracer reports it, and the grouping of records into iterations.

The tracer is cupti-python: callbacks registered once per process (re-registering corrupts head records after idle,
pytorch#192021), the activity kinds enabled around a session and disabled after it (enabled, a host call costs 5.5
instead of 4.9 us; disabled, nothing). torch.profiler is the fallback.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch

from kernelviz.core.errors import DeviceError
from kernelviz.hardware.tracing import no_tracer

FLUSH = "kernelviz_flush_l2"
MARKER = "kernelviz_end_marker"
POISON = "kernelviz_poison"
MEMCPY, MEMSET = "memcpy", "memset"
EARLY_NS = 5_000
"""A call stamped as started this much before its flush ended did not wait for it."""
MAX_RECORDS = 5_000_000
"""A worker is replaced after this many records: bad stamps were reported after about 25 M graph records (parcagpu#23)."""


@dataclass(frozen=True, slots=True)
class Record:
    """One kernel, memcpy or memset on the device.

    Stamps are whole nanoseconds of the tracer's clock: as float64 seconds since 1970 they would be rounded to 0.24 us.
    """

    name: str
    start_ns: int
    end_ns: int
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    registers: int | None = None
    shared_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Iteration:
    """What one call did on the device, between the flush before it and the marker behind it."""

    flush_end_ns: int
    marker_end_ns: int
    calls: tuple[Record, ...]

    @property
    def span_s(self) -> float:
        """Last end - first start. Divided, not multiplied by 1e-9: whole nanoseconds then stay short numbers in documents."""
        return (max(r.end_ns for r in self.calls) - self._start_ns(self.calls[0])) / 1e9

    @property
    def busy_s(self) -> float:
        """Time during which at least one of the call's kernels ran."""
        total, covered = 0, self.flush_end_ns
        for record in self.calls:
            total += max(0, record.end_ns - max(record.start_ns, covered))
            covered = max(covered, record.end_ns)
        return total / 1e9

    def _start_ns(self, record: Record) -> int:
        # Inside a graph a node is stamped as started up to 1 us before the node that it depends on has ended (its launch
        # overlaps the other's tail; seen: start 832 ns early, duration 2.08 instead of 1.25 us). No instruction of it can
        # have run by then, so its time begins where the flush ends. This is why graph nodes read 0.1-0.5 us longer.
        return max(record.start_ns, self.flush_end_ns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(r.name for r in self.calls)


class TraceError(Exception):
    """The records cannot be those of the calls that were made; the block is repeated."""


class WrongWork(TraceError):
    """The records are sound and show that the call does not do its work between its flush and its marker."""


class Tracer(Protocol):
    """Traces what the device does while `work` runs and is synchronised."""

    name: str
    records_seen: int

    def trace(self, work: Callable[[], None]) -> list[Record]: ...


def iterations(records: list[Record], expected: int) -> list[Iteration]:
    """Records grouped into `expected` iterations. Raises TraceError when they cannot be the calls that were made."""
    found: list[Iteration] = []
    opened: Record | None = None
    calls: list[Record] = []
    previous_end = 0
    for record in sorted(records, key=lambda r: r.start_ns):
        if not 0 < record.start_ns <= record.end_ns:
            raise TraceError(f"a record of {record.name} starts at {record.start_ns} and ends at {record.end_ns}")
        if record.name.startswith(FLUSH):
            if opened is not None:
                raise TraceError("two flushes without an end marker between them")
            if record.start_ns < previous_end - EARLY_NS:
                raise TraceError("a flush starts before the marker of the call before it has ended")
            opened, calls = record, []
        elif record.name.startswith(MARKER):
            if opened is None:
                raise TraceError("an end marker without a flush before it")
            if not calls:
                raise WrongWork("a call that launched nothing between its flush and its marker")
            if calls[0].start_ns < opened.end_ns - EARLY_NS:
                raise WrongWork(f"work of the call starts {opened.end_ns - calls[0].start_ns} ns before its flush ends")
            if any(c.end_ns > record.end_ns for c in calls):
                raise WrongWork("work of the call ends behind its end marker")
            found.append(Iteration(opened.end_ns, record.end_ns, tuple(calls)))
            opened, previous_end = None, record.end_ns
        elif opened is not None:
            calls.append(record)
    if opened is not None:
        raise TraceError("a flush without an end marker behind it")
    if len(found) != expected:
        raise TraceError(f"{len(found)} calls were traced, {expected} were made")
    return found


class CuptiTracer:
    """CUPTI's activity records through cupti-python, registered once per process."""

    name = "cupti"
    _registered: CuptiTracer | None = None

    def __init__(self) -> None:
        from cupti import cupti

        self._cupti: Any = cupti
        self.records_seen = 0
        self._records: list[Record] = []
        kinds = cupti.ActivityKind
        self._kinds = (kinds.CONCURRENT_KERNEL, kinds.MEMCPY, kinds.MEMSET)
        if CuptiTracer._registered is not None:
            raise RuntimeError("CUPTI's callbacks are registered once per process; use CuptiTracer.shared()")
        cupti.activity_register_callbacks(lambda: (8 * 2**20, 0), self._completed)
        CuptiTracer._registered = self

    @classmethod
    def shared(cls) -> CuptiTracer:
        return cls._registered or cls()

    def _completed(self, activities: list[Any]) -> None:
        # CUPTI reuses the buffer behind the objects when this returns, so facts are copied out here: as raw bytes,
        # because reading nine attributes of a record costs 30 us, and its bytes 2 us.
        layout = self._cupti.activity_kernel10_dtype
        kernels = [a for a in activities if type(a) is self._cupti.ActivityKernel10]
        raw = b"".join(ctypes.string_at(a.ptr, layout.itemsize) for a in kernels)
        self._records += _kernel_records(np.frombuffer(raw, dtype=layout))
        if len(kernels) < len(activities):
            kinds = {int(self._cupti.ActivityKind.MEMCPY): MEMCPY, int(self._cupti.ActivityKind.MEMSET): MEMSET}
            others = (a for a in activities if type(a) is not self._cupti.ActivityKernel10)
            self._records += [Record(kinds[a.kind], a.start, a.end) for a in others if a.kind in kinds]

    def trace(self, work: Callable[[], None]) -> list[Record]:
        """Records of everything on the device while `work` ran. The caller's work must be all that runs."""
        torch.cuda.synchronize()
        self._records = []
        for kind in self._kinds:
            self._cupti.activity_enable(kind)
        try:
            work()
            torch.cuda.synchronize()
            self._cupti.activity_flush_all(1)
        finally:
            for kind in self._kinds:
                self._cupti.activity_disable(kind)
        records, self._records = self._records, []
        self.records_seen += len(records)
        return records


def _kernel_records(rows: np.ndarray[Any, Any]) -> list[Record]:
    """Records of kernel activities. CUPTI shares one name string among all records of a kernel: each is read once."""
    names = {
        int(p): ctypes.string_at(int(p)).decode(errors="replace") if p else "unnamed" for p in np.unique(rows["name"])
    }
    grids = zip(rows["grid_x"].tolist(), rows["grid_y"].tolist(), rows["grid_z"].tolist(), strict=True)
    blocks = zip(rows["block_x"].tolist(), rows["block_y"].tolist(), rows["block_z"].tolist(), strict=True)
    shared = (rows["static_shared_memory"] + rows["dynamic_shared_memory"]).tolist()
    columns = (
        rows["name"].tolist(),
        rows["start"].tolist(),
        rows["end"].tolist(),
        rows["registers_per_thread"].tolist(),
    )
    return [
        Record(names[name], start, end, grid, block, registers, memory)
        for name, start, end, registers, grid, block, memory in zip(*columns, grids, blocks, shared, strict=True)
    ]


class KinetoTracer:
    """torch.profiler's raw events: names and times only. Sessions cost 2.5 s at first, memory grows with use."""

    name = "kineto"

    def __init__(self) -> None:
        self.records_seen = 0

    def trace(self, work: Callable[[], None]) -> list[Record]:
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
    """Kineto's "Memcpy DtoD (Device -> Device)" and "Memset (Device)" by CUPTI's kinds; kernels as they are."""
    lower = name.lower()
    return MEMCPY if lower.startswith("memcpy") else MEMSET if lower.startswith("memset") else name


def _one_kernel() -> None:
    torch.zeros(1024, device="cuda")


def open_tracer() -> tuple[Tracer, str]:
    """The best tracer that works here and a line: its name, then why a better one does not. Raises DeviceError, with the
    remedy, when none does."""
    reasons: list[str] = []
    for make in (CuptiTracer.shared, KinetoTracer):
        try:
            tracer: Tracer = make()
            records = tracer.trace(_one_kernel)
        except Exception as error:
            reasons.append(f"{make.__qualname__}: {type(error).__name__}: {error}")
            continue
        if records:
            return tracer, "; ".join([tracer.name, *reasons])
        reasons.append(f"{make.__qualname__}: traced nothing")
    raise DeviceError(no_tracer(reasons))
