"""What of this machine hampers measuring, each in a sentence with its remedy: for the page and for `kernelviz device`."""

from __future__ import annotations

import getpass
import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from kernelviz.core.run import Device
from kernelviz.hardware import nvml
from kernelviz.hardware.telemetry import own_pids
from kernelviz.hardware.toolchain import no_c_compiler, no_cxx_compiler, no_triton
from kernelviz.ops.nvrtc import cache_folder

LEAST_FREE_BYTES = 2**30
"""Under this a compile or a long run may fill the disk: one run of torch.compile's sweep leaves some 100 MB."""


@dataclass(frozen=True, slots=True)
class Notice:
    """What is wrong and what to do about it, one sentence each. `subject` is one word, for people and for tests."""

    subject: str
    sentence: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Neighbour:
    """Another process on the GPU; `name` is None where its name cannot be seen."""

    pid: int
    name: str | None


def notices(device: Device, tracer: str | None, data_folder: Path | None) -> tuple[Notice, ...]:
    """Everything that there is to say of a device now. Never raises, takes some milliseconds.

    `tracer`: the line of the last environment measured on it (core.run.Environment.tracer). `data_folder`: where runs are.
    """
    found = [unusable(device), toolchain(device)]
    if device.kind == "cuda":
        found += [mig(device, _mig_mode(device)), tracing(tracer), neighbours(_listed(device), own_pids())]
    return tuple(n for n in (*found, *disks(folders(os.environ, data_folder))) if n is not None)


def unusable(device: Device) -> Notice | None:
    """The reason that discovery found already (driver too old, a torch without CUDA, a GPU too old)."""
    if device.usable:
        return None
    what, _, remedy = device.reason.partition("; ")
    return Notice("device", f"{device.name} cannot be measured: {what}", remedy)


def toolchain(device: Device) -> Notice | None:
    """No compiler: the app works, Triton and torch.compile do not."""
    if device.kind == "cuda":
        reason = None if no_triton() else no_c_compiler("Triton builds its launcher with it")
        who = "Triton and torch.compile variants"
    else:
        reason = no_cxx_compiler("g++", "torch.compile builds its CPU kernels with it")
        who = "torch.compile and C++ variants"
    if reason is None:
        return None
    what, _, remedy = reason.partition("; ")
    return Notice("compiler", f"{who} are unavailable: it {what}", remedy)


def mig(device: Device, mode: tuple[int, int] | None) -> Notice | None:
    """A slice of a GPU: its memory and multiprocessors are a part, the data sheet's roofs are the whole's."""
    if not (device.uuid.startswith("MIG-") or " MIG " in device.name or (mode is not None and mode[0] == 1)):
        return None
    return Notice(
        "mig",
        f"{device.name} is divided (MIG): a slice has a share of its memory, multiprocessors and bandwidth, and its "
        "neighbours share the power limit",
        "compare only with roofs measured in this slice (Calibrate), never with the data sheet",
    )


def tracing(tracer: str | None) -> Notice | None:
    """CUPTI could not be used by the worker that measured last; its line says why."""
    name, _, why = (tracer or "cupti").partition("; ")
    if name == "cupti":
        return None
    said = f" ({why})" if why else ""
    remedy = "install cupti-python at the version that fits torch's CUPTI: pip install cupti-python==13.0.1"
    if "INSUFFICIENT_PRIVILEGES" in why.upper():
        remedy = (
            "let users profile: NVreg_RestrictProfilingToAdminUsers=0 for the driver, or CAP_PERFMON for the container"
        )
    elif "MULTIPLE_SUBSCRIBERS" in why.upper():
        remedy = "another profiler (nsys, ncu, a debugger) holds CUPTI in this process: start kernelviz without it"
    return Notice("tracer", f"CUPTI does not work here{said}; kernels are timed by torch.profiler, more slowly", remedy)


def neighbours(listed: Iterable[Neighbour] | None, own: Collection[int]) -> Notice | None:
    """Programs of others on the GPU; of those that a container cannot see, nothing is said (they are unknown)."""
    others = [n for n in listed or () if n.pid not in own]
    # In a container the driver lists pids of the host: where ours is not among them, none can be told apart.
    if not others or (listed is not None and not {n.pid for n in listed} & set(own)):
        return None
    named = ", ".join(f"{n.name or 'unknown program'} (pid {n.pid})" for n in others[:3])
    more = f" and {len(others) - 3} more" if len(others) > 3 else ""
    return Notice(
        "neighbours",
        f"other programs are on this GPU: {named}{more}; they take its time, cache and power",
        "end them, or choose another GPU, before you trust small differences",
    )


def folders(environment: Mapping[str, str], data_folder: Path | None) -> dict[str, Path]:
    """What is written while measuring, by the variable that moves it."""
    triton = environment.get("TRITON_CACHE_DIR") or f"{environment.get('TRITON_HOME', Path.home())}/.triton/cache"
    inductor = environment.get("TORCHINDUCTOR_CACHE_DIR") or f"{tempfile.gettempdir()}/torchinductor_{_user()}"
    found = {
        "TRITON_CACHE_DIR": Path(triton),
        "TORCHINDUCTOR_CACHE_DIR": Path(inductor),
        "KERNELVIZ_CACHE": Path(environment.get("KERNELVIZ_CACHE") or cache_folder().parent),
    }
    return found if data_folder is None else {**found, "KERNELVIZ_HOME": data_folder}


def disks(written: Mapping[str, Path], least_bytes: int = LEAST_FREE_BYTES) -> tuple[Notice, ...]:
    """Folders that cannot be written, or whose disk is nearly full."""
    found = []
    for variable, folder in written.items():
        there = next((p for p in (folder, *folder.parents) if p.is_dir()), None)
        if there is None or not os.access(there, os.W_OK | os.X_OK):
            found.append(Notice("disk", f"{folder} cannot be written", f"give it permission, or set {variable}"))
            continue
        free = shutil.disk_usage(there).free
        if free < least_bytes:
            what = f"the disk of {folder} has {free / 2**20:.0f} MiB left"
            found.append(Notice("disk", what, f"free some space, or set {variable} to a folder on another disk"))
    return tuple(found)


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return str(os.getuid())


def _handle(device: Device) -> tuple[Any, Any]:
    return nvml.opened().library, nvml.handle(device.uuid)


def _mig_mode(device: Device) -> tuple[int, int] | None:
    library, handle = _handle(device)
    mode = None if handle is None else nvml.ask(library.nvmlDeviceGetMigMode, handle)
    return None if mode is None else (int(mode[0]), int(mode[1]))


def _listed(device: Device) -> list[Neighbour] | None:
    library, handle = _handle(device)
    listed = None if handle is None else nvml.ask(library.nvmlDeviceGetComputeRunningProcesses, handle)
    return None if listed is None else [Neighbour(p.pid, _name(p.pid)) for p in listed]


def _name(pid: int) -> str | None:
    try:
        return str(psutil.Process(pid).name())
    except psutil.Error:
        return None
