"""The sampler: one thread, only when somebody looks or measures, PCIe kept out of a measurement's way."""

from __future__ import annotations

import threading
from types import SimpleNamespace
from typing import Any

import pytest

from kernelviz.core.device_sample import Sample
from kernelviz.core.run import Device
from kernelviz.hardware import nvml, telemetry
from kernelviz.hardware.monitor import HISTORY_S, LOOKED_S, Monitor
from tests.hardware.test_discovery import CPU, H200, Driver

OTHER = Device(id="cuda:1", kind="cuda", name="NVIDIA H200", uuid="GPU-bb")


class Stage:
    """A monitor over a clock and a reader that a test sets."""

    def __init__(self) -> None:
        self.time_s = 1000.0
        self.measuring: set[str] = set()
        self.asked: list[tuple[str, bool, bool]] = []
        self.monitor = Monitor(
            (H200, OTHER), lambda d: d.id in self.measuring, read=self.read, now_s=lambda: self.time_s
        )
        # The thread is not begun: the test takes its steps itself.
        self.monitor._thread = threading.current_thread()

    def read(self, device: Device, *, running: bool, pcie: bool) -> Sample:
        self.asked.append((device.id, running, pcie))
        return Sample(at_s=self.time_s, running=running)


def test_nothing_is_asked_before_anybody_looks() -> None:
    stage = Stage()
    assert stage.monitor.step() == ()
    assert stage.monitor.look("cuda:0") == ()
    assert stage.monitor.step() == ("cuda:0",)
    assert [s.at_s for s in stage.monitor.look("cuda:0")] == [1000.0]
    assert stage.asked == [("cuda:0", False, True)], "the other GPU was not looked at"


def test_it_falls_silent_when_nobody_looks_and_wakes_for_a_measurement() -> None:
    stage = Stage()
    stage.monitor.look("cuda:0")
    stage.time_s += LOOKED_S + 1
    assert stage.monitor.step() == ()
    stage.measuring = {"cuda:1"}
    assert stage.monitor.step() == ("cuda:1",)
    assert stage.asked == [("cuda:1", True, False)]


def test_pcie_is_not_asked_while_something_is_measured() -> None:
    stage = Stage()
    stage.monitor.look("cuda:0")
    stage.measuring = {"cuda:0"}
    stage.monitor.step()
    stage.measuring = set()
    stage.monitor.step()
    assert [pcie for _, _, pcie in stage.asked] == [False, True]


def test_an_hour_is_kept_and_no_more() -> None:
    stage = Stage()
    for _ in range(int(HISTORY_S) + 5):
        stage.monitor.look("cuda:0")
        stage.monitor.step()
        stage.time_s += 1.0
    kept = stage.monitor.look("cuda:0")
    assert len(kept) == HISTORY_S
    assert kept[-1].at_s - kept[0].at_s == HISTORY_S - 1


def test_one_thread_serves_any_number_of_lookers_and_ends_with_the_monitor() -> None:
    taken = threading.Event()

    def read(device: Device, *, running: bool, pcie: bool) -> Sample:
        taken.set()
        return Sample(at_s=0.0)

    monitor = Monitor((CPU,), lambda _: False, read=read)
    for _ in range(5):
        monitor.look("cpu")
    assert taken.wait(20)
    threads = [t for t in threading.enumerate() if t is monitor._thread]
    assert len(threads) == 1
    follower = monitor.follow("cpu")
    monitor.close()
    assert list(follower) == []
    threads[0].join(20)
    assert not threads[0].is_alive()


def test_a_follower_gets_each_new_sample() -> None:
    stage = Stage()
    seen: list[Sample] = []
    begun = threading.Event()

    def follow() -> None:
        for sample in stage.monitor.follow("cuda:0"):
            seen.append(sample)
            begun.set()

    follower = threading.Thread(target=follow, daemon=True)
    follower.start()
    while not begun.is_set():
        stage.monitor.step()
    stage.monitor.close()
    follower.join(20)
    assert not follower.is_alive()
    assert seen
    assert seen[0].at_s == 1000.0


def test_a_reader_that_fails_ends_neither_thread_nor_the_other_devices(caplog: pytest.LogCaptureFixture) -> None:
    failed = threading.Event()

    def read(device: Device, *, running: bool, pcie: bool) -> Sample:
        failed.set()
        raise OSError("the driver is gone")

    monitor = Monitor((CPU,), lambda _: False, read=read)
    monitor.look("cpu")
    assert failed.wait(20)
    assert monitor._thread is not None
    assert monitor._thread.is_alive()
    monitor.close()
    monitor._thread.join(20)
    assert "could not be taken" in caplog.text


class Busy(Driver):
    """An H200 that also counts utilisation, memory in use and PCIe traffic."""

    nvmlMemory_v2 = 2
    NVML_PCIE_UTIL_TX_BYTES, NVML_PCIE_UTIL_RX_BYTES = 0, 1
    asked_pcie = 0

    def nvmlDeviceGetUtilizationRates(self, handle: str) -> Any:
        return SimpleNamespace(gpu=87, memory=40)

    def nvmlDeviceGetMemoryInfo(self, handle: str, version: int | None = None) -> Any:
        reserved = 0 if version == 2 else 600_000_000
        return SimpleNamespace(total=150_000_000_000, used=4_000_000_000 + reserved, free=1)

    def nvmlDeviceGetPcieThroughput(self, handle: str, counter: int) -> int:
        self.asked_pcie += 1
        return {0: 1_000, 1: 2_500_000}[counter]


def test_a_gpus_sample_has_every_quantity_in_base_units(monkeypatch: pytest.MonkeyPatch) -> None:
    library = Busy()
    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(library))
    sample = telemetry.read(H200)
    assert (sample.busy_fraction, sample.memory_busy_fraction) == (0.87, 0.40)
    assert (sample.used_bytes, sample.total_bytes) == (4_000_000_000, 150_000_000_000), "without the driver's own"
    assert (sample.to_device_bytes_per_s, sample.from_device_bytes_per_s) == (2.5e9, 1e6)
    assert (sample.sm_clock_hz, sample.memory_clock_hz, sample.power_w) == (1.98e9, 3.201e9, 123.4)
    assert sample.temperature_c is None, "this driver does not tell it"
    assert sample.event_reasons == ("power cap",)
    quiet = telemetry.read(H200, running=True, pcie=False)
    assert (quiet.running, quiet.to_device_bytes_per_s) == (True, None)
    assert library.asked_pcie == 2


def test_what_a_driver_does_not_count_is_unknown_and_never_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    class Older(Driver):
        def nvmlDeviceGetMemoryInfo(self, handle: str) -> Any:
            return SimpleNamespace(total=150, used=10, free=140)

    monkeypatch.setattr(nvml, "opened", lambda: nvml.Nvml(Older()))
    sample = telemetry.read(H200)
    assert (sample.used_bytes, sample.total_bytes) == (10, 150)
    assert sample.busy_fraction is sample.to_device_bytes_per_s is sample.memory_busy_fraction is None
    gone = telemetry.read(Device(id="cuda:9", kind="cuda", name="x", uuid="GPU-gone"), running=True)
    assert gone.running
    assert gone.power_w is gone.used_bytes is None


def test_the_processor_tells_its_memory_and_from_the_second_sample_on_its_load() -> None:
    found: list[Sample] = []
    reader = threading.Thread(target=lambda: found.extend(telemetry.read(CPU) for _ in range(2)))
    reader.start()
    reader.join(20)
    first, second = found
    assert first.busy_fraction is None
    assert first.cores_fraction == ()
    assert len(second.cores_fraction) >= 1
    assert second.busy_fraction is not None
    assert 0 <= second.busy_fraction <= 1
    assert first.used_bytes is not None
    assert first.total_bytes is not None
    assert 0 < first.used_bytes < first.total_bytes
