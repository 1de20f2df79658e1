"""The state of the device while it is measured: its timer, its conditions, and whether this process can still be used."""

from __future__ import annotations

import time
from collections.abc import Callable

import msgspec

from kernelviz.core import IDLE, Conditions, Device, EventReason
from kernelviz.core.errors import one_line
from kernelviz.core.reasons import ReplacedFunctions
from kernelviz.hardware.telemetry import conditions, strangers
from kernelviz.measure.session import failures
from kernelviz.measure.session.own_functions import OwnFunctions
from kernelviz.measure.timing.timer import DeviceTimer
from kernelviz.measure.timing.trace import TraceError, WrongWork

LOOK_S = 0.05
"""The minimum time between two queries of the driver during rounds. A query takes 1-2 ms and is made only between batches."""
THROTTLED: tuple[EventReason, ...] = (
    "hardware slowdown",
    "thermal slowdown (software)",
    "thermal slowdown (hardware)",
    "power brake",
)
"""Reasons (hardware.telemetry) to repeat a batch. The power cap is not among them, because it is normal under load."""


class DeviceState:
    """One device with its timer.

    `release` frees memory after an out-of-memory error, and returns why the process must be replaced, or None.
    """

    def __init__(
        self,
        device: Device,
        timer: DeviceTimer,
        release: Callable[[], str | None],
        strangers: Callable[[Device], frozenset[int]] = strangers,
        functions: OwnFunctions | None = None,
        plugins: tuple[str, ...] = (),
    ) -> None:
        """`functions`: those of this process before it ran any variant. `plugins`: the files whose variants it has."""
        self.device, self.timer, self.plugins = device, timer, plugins
        self._functions = functions or OwnFunctions()
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
        """Whether no further call to the device is possible."""
        return self._spoilt is not None

    def tampered(self) -> ReplacedFunctions | None:
        """The functions of this process that a variant has replaced. Then nothing that this process measures counts any more."""
        functions = self._functions.replaced()
        if not functions:
            return None
        self._spoilt = f"a variant replaced {', '.join(functions[:3])}"
        return ReplacedFunctions(functions=functions)

    def note(self, error: Exception) -> None:
        """Decide after an error whether this process can still be used for the next problem."""
        if isinstance(error, TraceError) and not isinstance(error, WrongWork):
            self._spoilt = f"the tracer lost its records: {error}"
        elif failures.sticky(error):
            self._spoilt = f"CUDA error: {one_line(error, 200)}"
        elif failures.out_of_memory(error):
            self._spoilt = self._release()

    def share(self, who: str) -> None:
        """Record that another process created a CUDA context on the device after this one. Until this process ends, its short
        kernels read 0.08-0.1 us longer, even after the other process has ended (an add of 2^12 on an H200: 1.50 instead of
        1.40 us)."""
        if self.device.kind == "cuda":
            self._shared = f"{who} came to the GPU after this process"

    def crowded(self) -> bool:
        """Whether another program started to use the device after this process. A new process must then measure."""
        came = self._strangers(self.device) - self._here_before
        if came:
            self.share(f"another program (process {min(came)})")
        return self._shared is not None

    def watch(self) -> Watch:
        """Start to record the device's conditions during a measurement."""
        return Watch(self.device)


class Watch:
    """The conditions that the driver reported between the batches of one measurement."""

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
        """Query the driver, unless the last query is too recent. True when the blocks since the last query must be repeated."""
        now_s = self._clock_s()
        if now_s < self._next_s:
            return False
        self._next_s = now_s + LOOK_S
        self._seen.append(self._read(self._device))
        return any(r in THROTTLED for r in self._seen[-1].event_reasons)

    def summary(self) -> Conditions:
        """The last reading, with all throttle reasons and the largest number of other processes that were reported."""
        self._next_s = 0.0
        self.look()
        # The device is idle between two batches. That is not a reason for a low clock during a block.
        reasons = dict.fromkeys(r for c in self._seen for r in c.event_reasons if r != IDLE)
        return msgspec.structs.replace(
            self._seen[-1],
            event_reasons=tuple(reasons),
            other_processes=max((c.other_processes for c in self._seen if c.other_processes is not None), default=None),
            temperature_c=max((c.temperature_c for c in self._seen if c.temperature_c is not None), default=None),
        )
