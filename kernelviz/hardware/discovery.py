"""The devices of this machine, whether each can be used, and the needs of a variant that a device does not meet."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

from kernelviz.core import Device
from kernelviz.hardware import mig, nvml
from kernelviz.hardware.cpu import cpu
from kernelviz.hardware.toolchain import (
    TorchBuild,
    installed_versions,
    no_c_compiler,
    no_cxx_compiler,
    no_liger,
    no_nvrtc,
    no_python_headers,
    no_triton,
    torch_build,
)

# FP32 cores of one multiprocessor: CUDA C++ Programming Guide, "Compute Capabilities"; from 10.0 on helper_cuda.h of NVIDIA's
# cuda-samples, and the core counts of products (GeForce RTX 5090: 21,760 cores in 170 multiprocessors; B200: 18,944 in 148).
_CORES_A_MULTIPROCESSOR = {
    **dict.fromkeys(((7, 0), (7, 5), (8, 0)), 64),
    **dict.fromkeys(((8, 6), (8, 7), (8, 9), (9, 0), (10, 0), (10, 3), (11, 0), (12, 0), (12, 1)), 128),
}
_LEAST_CAPABILITY = (7, 5)
"""CUDA 13 builds for Turing and later (CUDA 13.0 release notes)."""


def discover() -> tuple[Device, ...]:
    """The devices of this machine, GPUs first in CUDA's numbering, ``cpu`` always last. Never raises."""
    return (*gpus(), cpu())


def gpu_problem() -> str:
    """Why no GPU can be measured here, in a sentence with the remedy; empty when one can."""
    library = nvml.opened()
    if library.library is None:
        return library.problem
    devices = gpus()
    if not devices:
        hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
        if hidden is not None:
            return f"CUDA_VISIBLE_DEVICES={hidden!r} hides every GPU of this machine; unset it"
        return "the NVIDIA driver sees no GPU"
    return "" if any(g.usable for g in devices) else devices[0].reason


def gpus() -> tuple[Device, ...]:
    """The NVIDIA GPUs in CUDA's numbering, including those that cannot be used, with the reason."""
    library = nvml.opened().library
    if library is None:
        return ()
    count = nvml.ask(library.nvmlDeviceGetCount) or 0
    handles = [h for i in range(count) if (h := nvml.ask(library.nvmlDeviceGetHandleByIndex, i)) is not None]
    uuids = {nvml.text(nvml.ask(library.nvmlDeviceGetUUID, h)): h for h in handles}
    driver = nvml.ask(library.nvmlSystemGetDriverVersion)
    version = nvml.ask(library.nvmlSystemGetCudaDriverVersion_v2)
    divided = {uuid: slices for uuid, h in uuids.items() if (slices := mig.of(library, h)) is not None}
    return tuple(
        _gpu(library, number, uuid, uuids.get(uuid) or nvml.handle(uuid), driver, cuda_version(version))
        for number, uuid in enumerate(mig.enumerated(visible(tuple(uuids), os.environ), divided))
    )


def missing(needs: Iterable[str], device: Device) -> str | None:
    """Why a variant with these needs (`kernelviz.ops.catalog.variant.Need`) cannot run on that device, and the remedy, or None.

    For a GPU that cannot be used at all, that reason is returned for every variant.
    """
    if not device.usable:
        return device.reason
    for need in needs:
        reason = _missing(need, device)
        if reason is not None:
            return reason
    return None


def _missing(need: str, device: Device) -> str | None:
    on_gpu = device.kind == "cuda"
    match need:
        case "cuda":
            return None if on_gpu else _no_gpu()
        case "cpu":
            return "runs on the processor only: choose cpu as the device" if on_gpu else None
        case "triton":
            return no_triton() or (_no_launcher() if on_gpu else None)
        case "nvrtc":
            return no_nvrtc()
        case "liger":
            return no_liger()
        case "sm_90":
            capability = device.compute_capability
            if capability is None or capability >= (9, 0):
                return None
            return f"needs compute capability 9.0 (Hopper) or later; this GPU has {capability[0]}.{capability[1]}"
        case "cxx":
            return no_cxx_compiler("c++", "it builds a C++ extension") or no_python_headers("a C++ extension")
        case "inductor" if on_gpu:
            return _missing("triton", device)
        case "inductor":
            return no_cxx_compiler("g++", "torch.compile builds its CPU kernels with it") or no_python_headers(
                "torch.compile's CPU code"
            )
        case _:
            return f"needs {need!r}, which this version of kernelviz does not know"


def _no_launcher() -> str | None:
    return no_c_compiler("Triton builds its launcher with it") or no_python_headers("Triton's launcher")


def _no_gpu() -> str:
    if any(g.usable for g in gpus()):
        return "needs CUDA: choose a GPU as the device"
    return f"needs CUDA: {gpu_problem()}"


def visible(uuids: tuple[str, ...], environment: Mapping[str, str]) -> tuple[str, ...]:
    """The UUIDs that CUDA shows, in its order: CUDA_VISIBLE_DEVICES holds numbers or UUIDs; an invalid entry ends the list.

    >>> visible(("GPU-a1", "GPU-b2"), {"CUDA_VISIBLE_DEVICES": "1,0"})
    ('GPU-b2', 'GPU-a1')
    >>> visible(("GPU-a1", "GPU-b2"), {"CUDA_VISIBLE_DEVICES": "GPU-b,-1,0"})
    ('GPU-b2',)
    """
    text = environment.get("CUDA_VISIBLE_DEVICES")
    if text is None:
        return uuids
    visible_uuids: list[str] = []
    for entry in (e.strip() for e in text.split(",")):
        if entry.isdecimal() and int(entry) < len(uuids):
            matches = [uuids[int(entry)]]
        elif entry.startswith("MIG-"):
            matches = [entry]
        else:
            matches = [u for u in uuids if entry and u.startswith(entry)]
        if len(matches) != 1 or matches[0] in visible_uuids:
            break
        visible_uuids += matches
    return tuple(visible_uuids)


def cuda_version(number: int | None) -> str | None:
    """
    >>> cuda_version(12040)
    '12.4'
    """
    return None if number is None else f"{number // 1000}.{number % 1000 // 10}"


def _gpu(library: Any, number: int, uuid: str, handle: Any, driver: object, driver_cuda: str | None) -> Device:
    whole = mig.whole(library, handle)
    memory = nvml.ask(library.nvmlDeviceGetMemoryInfo, handle)
    capability = nvml.ask(library.nvmlDeviceGetCudaComputeCapability, whole)
    cores = nvml.ask(library.nvmlDeviceGetNumGpuCores, handle)
    driver_text = None if driver is None else nvml.text(driver)
    nvrtc = installed_versions(("nvidia-cuda-nvrtc",)).get("nvidia-cuda-nvrtc")
    reason = unusable(driver_text, driver_cuda, capability, torch_build(), nvrtc)
    if not reason and mig.of(library, handle) == ():
        reason = mig.NO_SLICE
    return Device(
        id=f"cuda:{number}",
        kind="cuda",
        name=mig.name(uuid, nvml.text(nvml.ask(library.nvmlDeviceGetName, handle) or "NVIDIA GPU")),
        uuid=uuid,
        memory_bytes=None if memory is None else int(memory.total),
        multiprocessors=mig.multiprocessors(library, handle) or multiprocessors(cores, capability),
        compute_capability=None if capability is None else (int(capability[0]), int(capability[1])),
        driver=driver_text,
        driver_cuda=driver_cuda,
        usable=not reason,
        reason=reason,
    )


def multiprocessors(cores: int | None, capability: tuple[int, int] | None) -> int | None:
    """Multiprocessors from the count of cores, None where the architecture is not in the table.

    >>> multiprocessors(16896, (9, 0))
    132
    """
    each = None if capability is None else _CORES_A_MULTIPROCESSOR.get((capability[0], capability[1]))
    return cores // each if cores and each and cores % each == 0 else None


def unusable(
    driver: str | None,
    driver_cuda: str | None,
    capability: tuple[int, int] | None,
    torch: TorchBuild | None,
    nvrtc: str | None = None,
) -> str:
    """Why the worker cannot run on a GPU with that driver, with the remedy; empty when it can.

    `nvrtc`: the version of the installed compiler. It compiles the flush and the end marker, so the driver must support its
    CUDA version even when torch is built for an older one.
    """
    if torch is None:
        return "torch is not installed; install it with pip install -r requirements.txt and restart kernelviz"
    if torch.cuda is None:
        return (
            f"torch {torch.version} is a build without CUDA; "
            f"pip install --force-reinstall torch=={torch.version.partition('+')[0]} replaces it"
        )
    needed = [(f"torch {torch.version} is built for CUDA", torch.cuda)]
    if nvrtc is not None:
        needed.append(("kernelviz compiles its own kernels for CUDA", ".".join(nvrtc.split(".")[:2])))
    for who, cuda in needed:
        if driver_cuda is not None and _major(driver_cuda) < _major(cuda):
            return (
                f"driver {driver or 'unknown'} supports CUDA {driver_cuda}, {who} {cuda}, which needs "
                f"{_least_driver(cuda)}; update the driver and restart kernelviz, or choose cpu as the device"
            )
    if capability is not None and _major(torch.cuda) >= 13 and tuple(capability) < _LEAST_CAPABILITY:
        return (
            f"compute capability {capability[0]}.{capability[1]} is older than 7.5, "
            f"the least that CUDA {torch.cuda} is built for; choose another GPU, or cpu, as the device"
        )
    return ""


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match.group()) if match else 0


def _least_driver(cuda: str) -> str:
    # CUDA Toolkit release notes, "minimum driver for CUDA minor version compatibility".
    least = {12: "driver 525 or newer", 13: "driver 580 or newer"}
    return least.get(_major(cuda), "a newer driver")
