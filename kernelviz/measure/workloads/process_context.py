"""What the process of a runner and each rank process offer to a workload: clocks, rounds, intervals (`MeasuringContext`)."""

from __future__ import annotations

import os
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core import Device, Failure
from kernelviz.core.errors import one_line
from kernelviz.core.reasons import Raised
from kernelviz.core.workload import (
    Clock,
    Counted,
    Measured,
    WorkloadMethod,
    WorkloadProgress,
    WorkloadStep,
)
from kernelviz.measure.workloads.messages import CurrentVariant, Sender
from kernelviz.metrics.statistics import median_interval
from kernelviz.workloads.catalog import Sample, Series, TracedCall

if TYPE_CHECKING:
    from kernelviz.measure.workloads.device_trace import DeviceTrace

_SAY_EVERY_S = 0.2
AGAIN = "\0again"
"""Marks the second call of the baseline in a round."""


class ProcessContext:
    """A process on one device."""

    def __init__(
        self,
        *,
        device: Device,
        method: WorkloadMethod,
        headline: str,
        point: str,
        folder: Path,
        sender: Sender,
        current: CurrentVariant,
    ) -> None:
        self._device, self._method, self._headline, self._point = device, method, headline, point
        self._folder, self._sender, self._current = folder, sender, current
        self._said_s = 0.0
        self._trace: DeviceTrace | None = None

    @property
    def device(self) -> Device:
        return self._device

    @property
    def torch_device(self) -> str:
        return self._device.id

    @property
    def budget_s(self) -> float:
        return self._method.budget_s

    @property
    def seed(self) -> int:
        return self._method.seed

    @property
    def folder(self) -> Path:
        return self._folder

    @property
    def clock(self) -> Clock:
        return "cuda_events" if self._device.kind == "cuda" else "host"

    def use_device(self) -> None:
        """Make the GPU torch's current device."""
        if self._device.kind == "cuda":
            import torch

            torch.cuda.set_device(torch.device(self._device.id))

    def progress(self, step: WorkloadStep, variant: str = "", done: int | None = None, of: int | None = None) -> None:
        self._current.set(variant)
        self._said_s = time.monotonic()
        self._sender.send(WorkloadProgress(step=step, variant=variant, point=self._point, done=done, of=of))

    def synchronize(self) -> None:
        if self._device.kind == "cuda":
            import torch

            torch.cuda.synchronize(torch.device(self._device.id))

    def timed(self, call: Callable[[], object]) -> float:
        if self._device.kind != "cuda":
            return self.timed_by_host(call)
        import torch

        self.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))  # type: ignore[no-untyped-call]
        begin.record()
        call()
        end.record()
        end.synchronize()
        return float(begin.elapsed_time(end)) / 1e3

    def traced(self, calls: Sequence[Callable[[], object]]) -> tuple[TracedCall, ...]:
        if self._device.kind != "cuda":
            raise RuntimeError("a processor has no stamps of kernels; time its calls by the host's clock")
        if self._trace is None:
            # Torch is imported only where a workload needs it.
            from kernelviz.measure.workloads.device_trace import DeviceTrace

            self._trace = DeviceTrace(self._device.id)
        return self._trace.of(calls)

    def timed_by_host(self, call: Callable[[], object]) -> float:
        self.synchronize()
        began_s = time.perf_counter()
        call()
        self.synchronize()
        return time.perf_counter() - began_s

    def rounds(
        self, calls: Mapping[str, Callable[[], Sample]], *, baseline: str | None = None, warm_up: int = 1
    ) -> Mapping[str, Series]:
        order = random.Random(self._method.seed)
        live = dict(calls)
        sampled: dict[str, list[tuple[int, Mapping[str, float]]]] = {name: [] for name in calls}
        if baseline in calls:
            sampled[f"{baseline}{AGAIN}"] = []
        began_s, number = time.perf_counter(), -warm_up
        while live and self._another(number, began_s, len(calls)):
            if number == 0:
                began_s = time.perf_counter()
            names = [*live, *([f"{baseline}{AGAIN}"] if baseline in live else [])]
            order.shuffle(names)
            for name in names:
                variant = name.removesuffix(AGAIN)
                if variant in live:
                    self._call(name, variant, live, sampled, number)
            number += 1
        self._current.set("")
        return {name: self._series(name, sampled) for name in live}

    def _another(self, number: int, began_s: float, variants: int) -> bool:
        """Whether there is a round of that number (warm-up rounds are negative)."""
        if number <= 0:
            return True
        if number >= self._method.rounds_max:
            return False
        spent = time.perf_counter() - began_s
        return number < self._method.rounds_min or spent < self._method.budget_s * variants

    def _call(
        self,
        name: str,
        variant: str,
        live: dict[str, Callable[[], Sample]],
        sampled: dict[str, list[tuple[int, Mapping[str, float]]]],
        number: int,
    ) -> None:
        self._current.set(variant)
        if time.monotonic() - self._said_s > _SAY_EVERY_S:
            step: WorkloadStep = "warming_up" if number < 0 else "measuring"
            of = None if number < 0 else self._method.rounds_max
            self.progress(step, variant, max(0, number), of)
        try:
            sample = live[variant]()
        except Exception as error:
            self.call_raised(variant, error)
            del live[variant]
            return
        if number >= 0:
            sampled[name].append((number, sample if isinstance(sample, Mapping) else {self._headline: sample}))

    def call_raised(self, variant: str, error: Exception) -> None:
        """A call in a round raised. Here it ends the process's function; the runner's process makes it the case's failure."""
        raise error

    @staticmethod
    def _series(name: str, sampled: Mapping[str, list[tuple[int, Mapping[str, float]]]]) -> Series:
        def by_figure(key: str) -> dict[str, tuple[float, ...]]:
            rows = sampled.get(key, [])
            return {figure: tuple(float(row[figure]) for _, row in rows) for figure in (rows[0][1] if rows else ())}

        rounds = tuple(number for number, _ in sampled[name])
        return Series(samples=by_figure(name), rounds=rounds, again=by_figure(f"{name}{AGAIN}"))

    def measured(
        self,
        samples: Sequence[float],
        *,
        rounds: Sequence[int] = (),
        again: Sequence[float] = (),
        clock: Clock | None = None,
    ) -> Measured:
        interval = median_interval(samples)
        return Measured(
            estimate=interval.estimate,
            low=interval.low,
            high=interval.high,
            samples=tuple(samples),
            rounds=tuple(rounds),
            again=tuple(again),
            clock=clock or self.clock,
        )

    def counted(self, value: float, clock: Clock = "arithmetic") -> Counted:
        return Counted(value=float(value), clock=clock)


def prefer_this_process_when_memory_is_short() -> None:
    """Make the kernel end this process, and those that it starts, before the server if the host's memory runs out."""
    with suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000")


def is_out_of_memory(error: BaseException) -> bool:
    """Whether the exception says that memory of the host or of the device was short, without importing torch."""
    torch = sys.modules.get("torch")
    of_torch = torch is not None and isinstance(error, torch.OutOfMemoryError)
    return of_torch or isinstance(error, MemoryError) or "can't allocate memory" in str(error).lower()


def failure_of(error: BaseException) -> Failure:
    """The failure of a case whose code raised this exception."""
    if is_out_of_memory(error):
        return Failure(stage="out_of_memory", message=one_line(error))
    return Failure(stage="crash", reasons=(Raised(type=type(error).__name__),), message=one_line(error))


def end_without_waiting() -> None:
    """End this process now: threads and finalisers of libraries, which may hang, have nothing left to do."""
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)
