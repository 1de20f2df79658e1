"""Current clocks, power, temperature, load and other processes of a device: context for a measurement, never part of one."""

import os
import threading
import time
from collections.abc import Collection
from typing import Any

import psutil

from kernelviz.core import Conditions, Device, DriverSilent, EventReason, Sample, timestamps
from kernelviz.hardware import cpu, nvml
from kernelviz.hardware.other_processes import same_ids

# Bits of nvmlDeviceGetCurrentClocksEventReasons (NVML API reference, "NvmlClocksEventReasons").
EVENT_REASONS: dict[int, EventReason] = {
    0x001: "idle",
    0x002: "application clocks",
    0x004: "power cap",
    0x008: "hardware slowdown",
    0x010: "sync boost",
    0x020: "thermal slowdown (software)",
    0x040: "thermal slowdown (hardware)",
    0x080: "power brake",
    0x100: "display clocks",
}

_previous_call = threading.local()
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Names of Linux's drivers that report a processor's own temperature (Linux hwmon documentation)."""


def conditions(device: Device, own: Collection[int] | None = None) -> Conditions:
    """The current readings of the device; a reading that it does not report is None. Never raises, takes about a millisecond.

    `own`: processes that do not count as other processes; by default this one and its descendants.
    """
    read_at = timestamps.now()
    if device.kind == "cpu":
        return Conditions(sm_clock_hz=_cpu_clock_hz(), temperature_c=None, threads=cpu.threads(), read_at=read_at)
    reached = nvml.reached(device)
    if reached is None:
        return Conditions(read_at=read_at, notes=(DriverSilent(),))
    library, handle = reached
    temperature = nvml.ask(library.nvmlDeviceGetTemperature, handle, library.NVML_TEMPERATURE_GPU)
    return Conditions(
        sm_clock_hz=_clock_hz(library, handle, library.NVML_CLOCK_SM),
        memory_clock_hz=_clock_hz(library, handle, library.NVML_CLOCK_MEM),
        power_w=_power_w(library, handle),
        temperature_c=None if temperature is None else float(temperature),
        event_reasons=event_reasons(_reason_bits(library, handle)),
        other_processes=_other_process_count(library, handle, own),
        read_at=read_at,
    )


def energy_joules(device: Device) -> float | None:
    """The energy that the device has used since its driver was loaded; None where it has no counter (before Volta)."""
    millijoules = nvml.ask_device(device, "nvmlDeviceGetTotalEnergyConsumption")
    return None if millijoules is None else millijoules / 1e3


def sm_clock_hz(device: Device) -> float | None:
    """The SM clock that the driver reports now, None when unknown."""
    reached = nvml.reached(device)
    return None if reached is None else _clock_hz(*reached, reached[0].NVML_CLOCK_SM)


def event_reasons(bits: int | None) -> tuple[EventReason, ...]:
    """
    >>> event_reasons(0x4 | 0x20), event_reasons(0)
    (('power cap', 'thermal slowdown (software)'), ())
    """
    return tuple(reason for bit, reason in EVENT_REASONS.items() if bits and bits & bit)


def other_processes(listed: Collection[int], own: Collection[int], *, same_ids: bool = False) -> int | None:
    """The number of listed processes that are not in `own`; None when it is unknown.

    In a container the process ids differ from the driver's, so a list without own processes may still contain them.
    `same_ids`: the process ids are the driver's.

    >>> other_processes([10, 20], [10]), other_processes([20], [10]), other_processes([], [10])
    (1, None, None)
    >>> other_processes([20], [10], same_ids=True), other_processes([], [10], same_ids=True)
    (1, 0)
    """
    return len(set(listed) - set(own)) if same_ids or set(listed) & set(own) else None


def strangers(device: Device) -> frozenset[int]:
    """Other processes on a GPU; empty where the driver's process ids are not this namespace's (in a container)."""
    listed = nvml.ask_device(device, "nvmlDeviceGetComputeRunningProcesses")
    pids = frozenset(int(p.pid) for p in listed or ())
    return pids - {os.getpid()} if same_ids() or os.getpid() in pids else frozenset()


def own_pids() -> set[int]:
    """This process and its descendants."""
    try:
        return {os.getpid(), *(child.pid for child in psutil.Process().children(recursive=True))}
    except psutil.Error:
        return {os.getpid()}


def _other_process_count(library: Any, handle: Any, own: Collection[int] | None) -> int | None:
    listed = nvml.ask(library.nvmlDeviceGetComputeRunningProcesses, handle)
    if listed is None:
        return None
    # Finding the own processes takes 2 ms, so it is done only where the list is not empty.
    ours = (own_pids() if own is None else own) if listed else ()
    return other_processes([p.pid for p in listed], ours, same_ids=same_ids())


def _clock_hz(library: Any, handle: Any, clock: int) -> float | None:
    mhz = nvml.ask(library.nvmlDeviceGetClockInfo, handle, clock)
    return None if mhz is None else mhz * 1e6


def _reason_bits(library: Any, handle: Any) -> int | None:
    bits = nvml.ask_for(library, "nvmlDeviceGetCurrentClocksEventReasons", handle)
    return nvml.ask(library.nvmlDeviceGetCurrentClocksThrottleReasons, handle) if bits is None else bits


def _power_w(library: Any, handle: Any) -> float | None:
    # The plain reading is a mean over the last second on Ampere and later; the field is the power now.
    fields = nvml.ask(library.nvmlDeviceGetFieldValues, handle, [library.NVML_FI_DEV_POWER_INSTANT])
    if fields and fields[0].nvmlReturn == library.NVML_SUCCESS:
        return float(fields[0].value.uiVal) / 1e3
    milliwatts = nvml.ask(library.nvmlDeviceGetPowerUsage, handle)
    return None if milliwatts is None else milliwatts / 1e3


def _cpu_clock_hz() -> float | None:
    try:
        frequency = psutil.cpu_freq()
    except (OSError, NotImplementedError, RuntimeError):
        return None
    return frequency.current * 1e6 if frequency and frequency.current else None


def read(device: Device, *, running: bool = False, pcie: bool = True) -> Sample:
    """A sample of the device's current state. Never raises. `pcie`: also read its traffic, which takes 40 ms on a GPU.

    A GPU takes about a millisecond without `pcie`; a processor 0.2 to 0.5 ms (psutil, 2 cores, idle and busy).
    The first sample of a processor in a thread has no load, because a load is counted from one sample to the next.
    """
    return (
        _gpu_sample(device, running=running, pcie=pcie)
        if device.kind == "cuda"
        else _cpu_sample(device, running=running)
    )


def _gpu_sample(device: Device, *, running: bool, pcie: bool) -> Sample:
    reached = nvml.reached(device)
    if reached is None:
        return Sample(at_s=time.time(), running=running)
    library, handle = reached
    now = conditions(device, own=())  # without `own`, searching this process's descendants would take 2 ms
    busy = nvml.ask_for(library, "nvmlDeviceGetUtilizationRates", handle)
    used, total = _memory(library, handle)
    return Sample(
        at_s=time.time(),
        running=running,
        busy_fraction=None if busy is None else busy.gpu / 100,
        memory_busy_fraction=None if busy is None else busy.memory / 100,
        used_bytes=used,
        total_bytes=total,
        # NVML counts from the GPU's side: received bytes go to the device.
        to_device_bytes_per_s=_pcie(library, handle, "NVML_PCIE_UTIL_RX_BYTES") if pcie else None,
        from_device_bytes_per_s=_pcie(library, handle, "NVML_PCIE_UTIL_TX_BYTES") if pcie else None,
        sm_clock_hz=now.sm_clock_hz,
        memory_clock_hz=now.memory_clock_hz,
        power_w=now.power_w,
        temperature_c=now.temperature_c,
        event_reasons=now.event_reasons,
    )


def _memory(library: Any, handle: Any) -> tuple[int | None, int | None]:
    # The first version counts the memory that the driver reserves for itself as used: 0.6 GB on an idle H200.
    version = getattr(library, "nvmlMemory_v2", None)
    given = (handle,) if version is None else (handle, version)
    memory: Any = nvml.ask(library.nvmlDeviceGetMemoryInfo, *given)
    return (None, None) if memory is None else (int(memory.used), int(memory.total))


def _pcie(library: Any, handle: Any, counter: str) -> float | None:
    """Bytes a second over 20 ms, during which NVML does not answer (NVML API, nvmlDeviceGetPcieThroughput: in KB/s)."""
    kind = getattr(library, counter, None)
    rate = None if kind is None else nvml.ask_for(library, "nvmlDeviceGetPcieThroughput", handle, kind)
    return None if rate is None else rate * 1e3


def _cpu_sample(device: Device, *, running: bool) -> Sample:
    now = conditions(device)
    memory = psutil.virtual_memory()
    loads = [load / 100 for load in psutil.cpu_percent(percpu=True)]
    # psutil counts from the last call of this thread and returns zeros at the first one.
    counted = getattr(_previous_call, "load", False)
    _previous_call.load = True
    return Sample(
        at_s=time.time(),
        running=running,
        busy_fraction=sum(loads) / len(loads) if counted else None,
        used_bytes=int(memory.total - memory.available),
        total_bytes=int(memory.total),
        sm_clock_hz=now.sm_clock_hz,
        temperature_c=_temperature_c(),
        cores_fraction=tuple(loads) if counted else (),
    )


def _temperature_c() -> float | None:
    """The hottest reading of the processor's own sensors; None where there is none (virtual machines)."""
    try:
        readings = psutil.sensors_temperatures() if hasattr(psutil, "sensors_temperatures") else {}  # Linux only
    except OSError:
        return None
    return max((r.current for name in _SENSORS for r in readings.get(name, ())), default=None)
