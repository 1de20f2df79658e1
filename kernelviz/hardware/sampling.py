"""One sample of a device: NVML for a GPU, psutil for a processor."""

import threading
import time
from typing import Any

import psutil

from kernelviz.core import Device, Sample
from kernelviz.hardware import nvml
from kernelviz.hardware.telemetry import conditions

_previous_call = threading.local()
_SENSORS = ("coretemp", "k10temp", "zenpower", "cpu_thermal")
"""Names of Linux's drivers that report a processor's own temperature (Linux hwmon documentation)."""


def read(device: Device, *, running: bool = False, pcie: bool = True) -> Sample:
    """A sample of the device's current state. Never raises. `pcie`: also read its traffic, which takes 40 ms on a GPU.

    A GPU takes about a millisecond without `pcie`; a processor 0.2 to 0.5 ms (psutil, 2 cores, idle and busy).
    The first sample of a processor in a thread has no load, because a load is counted from one sample to the next.
    """
    return _gpu(device, running=running, pcie=pcie) if device.kind == "cuda" else _cpu(device, running=running)


def _gpu(device: Device, *, running: bool, pcie: bool) -> Sample:
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
    # The first version counts what the driver keeps for itself as used: 0.6 GB on an idle H200.
    version = getattr(library, "nvmlMemory_v2", None)
    given = (handle,) if version is None else (handle, version)
    memory: Any = nvml.ask(library.nvmlDeviceGetMemoryInfo, *given)
    return (None, None) if memory is None else (int(memory.used), int(memory.total))


def _pcie(library: Any, handle: Any, counter: str) -> float | None:
    """Bytes a second over 20 ms, during which NVML does not answer (NVML API, nvmlDeviceGetPcieThroughput: in KB/s)."""
    kind = getattr(library, counter, None)
    rate = None if kind is None else nvml.ask_for(library, "nvmlDeviceGetPcieThroughput", handle, kind)
    return None if rate is None else rate * 1e3


def _cpu(device: Device, *, running: bool) -> Sample:
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
    ask = getattr(psutil, "sensors_temperatures", None)  # Linux only
    try:
        readings = ask() if ask is not None else {}
    except OSError:
        return None
    return max((r.current for name in _SENSORS for r in readings.get(name, ())), default=None)
