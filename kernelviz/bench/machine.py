"""The devices: present telemetry, changes of roofs, and runs. `Bench.machine`."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import psutil

from kernelviz.bench.stored_roofs import cache_bytes_of, cache_of, stored_roofs
from kernelviz.bench.summaries import Devices
from kernelviz.core import Device, DeviceError, RunTimes, Sample
from kernelviz.core.cache_size import CacheSize
from kernelviz.hardware.datasheet import ceilings
from kernelviz.hardware.monitor import Monitor
from kernelviz.metrics.calibrations import Calibration, Move, calibrations, moves
from kernelviz.metrics.roof_checks import RoofRefusal
from kernelviz.store import Store
from kernelviz.worker.device_lock import DeviceLock


class Machine:
    """Every method may be called from any thread."""

    def __init__(
        self,
        store: Store,
        devices: Sequence[Device],
        measuring: Callable[[str], bool],
        *,
        lock_directory: Path | None = None,
        monitor: Monitor | None = None,
    ) -> None:
        """`measuring`: whether this process measures on the device with that id. `monitor` is for tests."""
        self._store, self._devices, self._lock_directory = store, Devices(devices), lock_directory
        self._locks: dict[str, DeviceLock] = {}
        self._measuring = measuring
        self._monitor = monitor or Monitor(devices, self._measured_on)

    def samples(self, device_id: str) -> tuple[Sample, ...]:
        """The samples of the device in the last hour, one each second, the oldest first. Raises UnknownName.

        The first call starts sampling. It stops if nobody has called for three minutes and nothing is measured on the device.
        """
        return self._monitor.look(self._devices[device_id].id)

    def watch(self, device_id: str) -> Iterator[Sample]:
        """Samples as they are taken, one each second, without end. Raises UnknownName."""
        return self._monitor.follow(self._devices[device_id].id)

    def calibrations(self, device_id: str) -> tuple[Calibration, ...]:
        """Every stored calibration of the device, the newest first. Raises UnknownName."""
        return calibrations(self._store.roofs.of_device(self._devices[device_id].uuid))

    def refused_roofs(self, device_id: str) -> tuple[RoofRefusal, ...]:
        """Why roofs of the newest calibration cannot be used. Raises UnknownName."""
        return stored_roofs(self._store, self._devices[device_id]).refused

    def roof_changes(self, device_id: str, now: Calibration, then: Calibration) -> tuple[Move, ...]:
        """How each roof of one calibration of the device changed from another one. Raises UnknownName."""
        device = self._devices[device_id]
        return moves(now, then, ceilings(device.name), cache_bytes_of(self._store, device))

    def run_times(self, device_id: str, limit: int = 6) -> tuple[RunTimes, ...]:
        """The kernel times of the newest runs on the device, the newest run first. Raises UnknownName."""
        return self._store.trends.kernel_times(self._devices[device_id].uuid, limit)

    def last_level_cache(self, device: Device) -> CacheSize | None:
        """The size of the last-level cache of a device, also of another machine, and where it is known from."""
        return cache_of(self._store, device)

    def close(self) -> None:
        self._monitor.close()

    def _measured_on(self, device: Device) -> bool:
        """Whether this process, or another one that is in the lock file of the device and still runs, measures on it."""
        if self._measuring(device.id):
            return True
        try:
            if device.id not in self._locks:
                self._locks[device.id] = DeviceLock(device.uuid, self._lock_directory)
            holder = self._locks[device.id].holder()
        except (DeviceError, OSError):  # no folder for lock files: then nobody can measure either
            return False
        return holder is not None and holder.pid != os.getpid() and psutil.pid_exists(holder.pid)
