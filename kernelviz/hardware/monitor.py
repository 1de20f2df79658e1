"""One sampler per process: a thread that reads devices once a second while somebody views them or measures on them."""

import itertools
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from kernelviz.core import Device, Sample
from kernelviz.hardware import telemetry

PERIOD_S = 1.0
HISTORY_S = 3600.0
"""An hour: 3,600 samples of some 0.5 KB a device."""
LOOKED_S = 180.0
"""Seconds after the last view when sampling stops, unless a measurement is running."""

_log = logging.getLogger(__name__)


class Reader(Protocol):
    """The signature of `telemetry.read`."""

    def __call__(self, device: Device, *, running: bool, pcie: bool) -> Sample: ...


class Monitor:
    """The samples of the last hour of each device that somebody viewed. Thread-safe; its thread starts with the first view.

    Cost for a measurement: a GPU's sample takes about 1 ms of NVML once a second, in another process than the one that
    measures; the PCIe counters, 20 ms each, are not read while anything is measured. Without a view and a measurement, a second
    costs one wake-up of 0.02 ms.
    """

    def __init__(
        self,
        devices: Sequence[Device],
        measuring: Callable[[Device], bool],
        *,
        read: Reader = telemetry.read,
        now_s: Callable[[], float] = time.monotonic,
    ) -> None:
        """Prepare without starting the thread. `measuring`: whether any process measures on that device."""
        self._devices, self._measuring, self._read, self._now_s = tuple(devices), measuring, read, now_s
        self._changed = threading.Condition()
        self._samples: dict[str, deque[Sample]] = {d.id: deque(maxlen=int(HISTORY_S / PERIOD_S)) for d in devices}
        self._counts: dict[str, int] = dict.fromkeys(self._samples, 0)
        self._looked: dict[str, float] = {}
        self._thread: threading.Thread | None = None
        self._closed = False

    def look(self, device_id: str) -> tuple[Sample, ...]:
        """The samples of the last hour, oldest first; the device is sampled for LOOKED_S from now on."""
        with self._changed:
            self._looked[device_id] = self._now_s()
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._run, name="monitor", daemon=True)
                self._thread.start()
            return tuple(self._samples[device_id])

    def follow(self, device_id: str) -> Iterator[Sample]:
        """Yield new samples until the monitor is closed."""
        self.look(device_id)
        with self._changed:
            seen = self._counts[device_id]
        while True:
            with self._changed:
                self._changed.wait_for(lambda n=seen: self._closed or self._counts[device_id] > n)  # type: ignore[misc]
                if self._closed:
                    return
                seen, newest = self._counts[device_id], self._samples[device_id][-1]
                self._looked[device_id] = self._now_s()
            yield newest

    def step(self) -> tuple[str, ...]:
        """Sample the devices that are due, and return their ids."""
        with self._changed:
            looked = dict(self._looked)
        due: list[str] = []
        for device in self._devices:
            seen = device.id in looked and self._now_s() - looked[device.id] < LOOKED_S
            running = self._measuring(device)
            if seen or running:
                sample = self._read(device, running=running, pcie=seen and not running)
                due.append(device.id)
                with self._changed:
                    self._samples[device.id].append(sample)
                    self._counts[device.id] += 1
                    self._changed.notify_all()
        return tuple(due)

    def close(self) -> None:
        """End the thread and every follower."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def _run(self) -> None:
        begun_s = self._now_s()
        for number in itertools.count(1):
            try:
                self.step()
            except Exception:  # a driver that fails must not end the sampling of other devices
                _log.exception("a sample could not be taken")
            with self._changed:
                # By the clock instead of fixed pauses, so that the duration of a sample does not shift later samples.
                left_s = begun_s + number * PERIOD_S - self._now_s()
                if self._closed or self._changed.wait_for(lambda: self._closed, max(left_s, 0.1 * PERIOD_S)):
                    return
