"""A bench over a real store and a played monitor: an H200 that was calibrated twice and has runs, and a processor."""

from __future__ import annotations

import math
from collections.abc import Sequence

import earlier_runs
import msgspec
import sample_runs as samples
from rehearsed_bench import RehearsedBench

from kernelviz.bench.machine import Machine
from kernelviz.core.device_sample import Sample
from kernelviz.core.run import Device, Roof
from kernelviz.hardware.monitor import Monitor

FIRST_S = 1_795_000_000.0


def gpu_sample(second: int, *, running: bool = False, at_s: float | None = None) -> Sample:
    """An H200 under a load that comes and goes."""
    load = 0.5 + 0.5 * math.sin(second / 20)
    return Sample(
        at_s=FIRST_S + second if at_s is None else at_s,
        running=running,
        busy_fraction=round(load, 2),
        memory_busy_fraction=round(load * 0.6, 2),
        used_bytes=int(4e9 + 2e9 * load),
        total_bytes=150_000_000_000,
        to_device_bytes_per_s=None if running else 2.5e9 * load,
        from_device_bytes_per_s=None if running else 1.1e9 * load,
        sm_clock_hz=1.98e9 - 2e8 * load,
        memory_clock_hz=3.201e9,
        power_w=120 + 480 * load,
        temperature_c=34 + 20 * load,
        event_reasons=("power cap",) if load > 0.9 else (),
    )


def cpu_sample(second: int, *, running: bool = False) -> Sample:
    """Two cores of a machine without a temperature sensor."""
    return Sample(
        at_s=FIRST_S + second,
        running=running,
        busy_fraction=0.4,
        used_bytes=3 * 2**30,
        total_bytes=32 * 2**30,
        sm_clock_hz=2.6e9,
        cores_fraction=(0.6, 0.2),
    )


class PlayedMonitor(Monitor):
    """Holds what a test gives it and starts no thread."""

    def __init__(self, devices: Sequence[Device], played: dict[str, tuple[Sample, ...]]) -> None:
        super().__init__(devices, lambda _: False)
        self.played = played

    def look(self, device_id: str) -> tuple[Sample, ...]:
        return self.played.get(device_id, ())


class DeviceBench(RehearsedBench):
    """Roofs, runs and samples for the Device page; `calibrations` so many of the shipped H200 run's roofs, then
    `newest_roofs`."""

    def __init__(
        self,
        played: dict[str, tuple[Sample, ...]] | None = None,
        *,
        devices: tuple[Device, ...] = (samples.H200, samples.CPU),
        calibrations: int = 2,
        runs: int = 2,
        newest_roofs: Sequence[Roof] = (),
    ) -> None:
        loaded = earlier_runs.load("h200-add")
        super().__init__(devices, roofs=loaded.environment.roofs if calibrations else ())
        store = self.history._store
        for number in range(calibrations):
            for roof in loaded.environment.roofs:
                store.roofs.put(devices[0].uuid, _on_day(roof, number, 1 + 0.02 * (number - calibrations + 1)))
        for roof in newest_roofs:
            store.roofs.put(devices[0].uuid, roof)
        for number in range(runs):
            environment = msgspec.structs.replace(loaded.environment, device=devices[0])
            store.runs.create(
                msgspec.structs.replace(
                    loaded, id=f"run-{number}", environment=environment, results=loaded.results[number::4]
                )
            )
        self.monitor = PlayedMonitor(devices, played or {})
        self.machine = Machine(store, devices, lambda _: False, monitor=self.monitor)


def _on_day(roof: Roof, day: int, scale: float) -> Roof:
    def scaled(value: float | None) -> float | None:
        return None if value is None else value * scale

    return msgspec.structs.replace(
        roof,
        bandwidth_bytes_per_s=scaled(roof.bandwidth_bytes_per_s),
        rate_flop_per_s=scaled(roof.rate_flop_per_s),
        low=scaled(roof.low),
        high=scaled(roof.high),
        measured_at=f"2026-11-{19 + day}T10:00:00+00:00",
    )
