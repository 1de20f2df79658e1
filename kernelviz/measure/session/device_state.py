"""The device while it measures: its timer, what is noticed beside the measurement, and whether this process is still good."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from kernelviz.core.errors import one_line
from kernelviz.core.result import Conditions, EventReason
from kernelviz.core.run import Device
from kernelviz.hardware.telemetry import conditions, strangers
from kernelviz.measure.session import failures
from kernelviz.measure.timing.timer import DeviceTimer
from kernelviz.measure.timing.trace import TraceError, WrongWork

LOOK_S = 0.05
"""The driver is asked at most so often while rounds run, and only between their batches: it answers in 1-2 ms."""
THROTTLED: tuple[EventReason, ...] = (
    "hardware slowdown",
    "thermal slowdown (software)",
    "thermal slowdown (hardware)",
    "power brake",
)
"""Reasons (hardware.telemetry) for which a batch is taken again. The power cap is none: it is how the card works under load."""


class DeviceState:
    """One device with its timer. `release` gives memory back when there is not enough of it."""

    def __init__(
        self,
        device: Device,
        timer: DeviceTimer,
        release: Callable[[], str | None],
        strangers: Callable[[Device], frozenset[int]] = strangers,
    ) -> None:
        self.device, self.timer = device, timer
        self._release, self._strangers = release, strangers
        self._here_before = strangers(device)
        self._spoilt: str | None = None
        self._shared: str | None = None

    @property
    def spoilt(self) -> str | None:
        """Why this process must be replaced before the next problem, or None."""
        return self._spoilt or self._shared or self.timer.worn

    @property
    def context_lost(self) -> bool:
        """Nothing can be asked of the device any more."""
        return self._spoilt is not None

    def note(self, error: Exception) -> None:
        """After an error: is this process still good for the next problem?"""
        if isinstance(error, TraceError) and not isinstance(error, WrongWork):
            self._spoilt = f"the tracer lost its records: {error}"
        elif failures.sticky(error):
            self._spoilt = f"CUDA error: {one_line(error, 200)}"
        elif failures.out_of_memory(error):
            self._spoilt = self._release()

    def share(self, who: str) -> None:
        """Others made a CUDA context on the device after ours. Until this process ends, its short kernels read 0.08-0.1 us
        longer by that, also when the others are gone (an add of 2^12 on an H200: 1.50 instead of 1.40 us)."""
        if self.device.kind == "cuda":
            self._shared = f"{who} came to the GPU after this process"

    def crowded(self) -> bool:
        """Whether others came to the device since this process did: then another one must measure."""
        came = self._strangers(self.device) - self._here_before
        if came:
            self.share(f"another program (process {min(came)})")
        return self._shared is not None

    def watch(self) -> Watch:
        """Begin to notice what happens beside a measurement."""
        return Watch(self.device)


class Watch:
    """What the driver reported between the batches of one measurement."""

    def __init__(
        self,
        device: Device,
        read: Callable[[Device], Conditions] = conditions,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._device, self._read, self._clock_s = device, read, clock_s
        self._seen: list[Conditions] = []
        self._next_s = 0.0
        self.look()

    def look(self) -> bool:
        """Ask the driver, unless that was done just now. True when what was measured since the last time must be repeated."""
        now_s = self._clock_s()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + LOOK_S
        self._seen.append(self._read(self._device))
        return any(r in THROTTLED for r in self._seen[-1].event_reasons)

    def summary(self) -> Conditions:
        """The last reading, with every reason that was ever reported and the most neighbours."""
        self._next_s = 0.0
        self.look()
        # An idle device between two batches is none that slowed anything down.
        reasons = dict.fromkeys(r for c in self._seen for r in c.event_reasons if r != "idle")
        other_processes = [c.other_processes for c in self._seen if c.other_processes is not None]
        hottest = [c.temperature_c for c in self._seen if c.temperature_c is not None]
        return msgspec.structs.replace(
            self._seen[-1],
            event_reasons=tuple(reasons),
            other_processes=max(other_processes, default=None),
            temperature_c=max(hottest, default=None),
        )
