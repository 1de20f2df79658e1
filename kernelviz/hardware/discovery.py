"""The devices of this machine, whether each can be used, and the needs of a variant that a device does not meet."""

import os
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from kernelviz.core import Device
from kernelviz.core.backends import BACKENDS
from kernelviz.core.notices import Notice, NoticeKind
from kernelviz.hardware import mig, nvml
from kernelviz.hardware.cpu import cpu
from kernelviz.hardware.toolchain import (
    TorchBuild,
    installed_versions,
    no_compiler,
    no_liger,
    no_nvrtc,
    no_package,
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
_LEAST_DRIVER = {12: 525, 13: 580}
"""By CUDA's major version (CUDA Toolkit release notes, "minimum driver for CUDA minor version compatibility")."""


def discover() -> tuple[Device, ...]:
    """The devices of this machine, GPUs first in CUDA's numbering, ``cpu`` always last.

    Errors: BadField where `cpu.CACHE_VARIABLE` is no whole number above 0; what the machine does not report raises nothing.
    """
    return (*gpus(), cpu())


def gpu_problem() -> str:
    """Why no GPU can be measured here, in a sentence with the remedy; empty when one can."""
    problem = _gpu_problem()
    return _sentence(problem) if problem else ""


def _sentence(problem: Notice) -> str:
    # Importing the texts takes a quarter of a second, and a worker on a usable device needs none.
    from kernelviz.text import format_notice

    return str(format_notice(problem))


def _gpu_problem() -> Notice | None:
    library, devices = nvml.opened(), gpus()
    if library.library is None:
        return library.problem
    if devices:
        return None if any(g.usable for g in devices) else device_problem(devices[0])
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES")
    return Notice("no_gpu") if hidden is None else Notice("gpus_hidden", {"value": hidden})


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


def missing(needs: Iterable[str], device: Device) -> Notice | None:
    """What a variant with these needs (`kernelviz.ops.catalog.variant.Need`) lacks on that device. None if it can run there.

    For a GPU that cannot be used at all, the notice states the reason of the device, whatever the needs are.
    """
    if not device.usable:
        return Notice("stated", {"text": device.reason})
    lack = next((lack for need in needs if (lack := lacking(need, device)) is not None), None)
    return lack if lack is None or lack.kind == "cpu_only" else Notice("needs", {"cause": lack})


def lacking(need: str, device: Device) -> Notice | None:
    """The requirement that a variant with this need misses on that device, which can be used; None where it misses none."""
    on_gpu = device.kind == "cuda"
    match need:
        case "cuda" if on_gpu:
            return None
        case "cuda":
            problem = _gpu_problem()
            return Notice("cuda", {"cause": problem}) if problem else Notice("gpu_not_chosen")
        case "cpu":
            return Notice("cpu_only") if on_gpu else None
        case "triton" | "inductor" if on_gpu:
            c_compiler = no_compiler("no_c_compiler", "CC", ("gcc", "clang"), "triton")
            return no_triton() or c_compiler or no_python_headers("triton")
        case "triton":
            return no_triton()
        case "nvrtc":
            return no_nvrtc()
        case "liger":
            return no_liger()
        case "sm_89":
            capability = device.compute_capability
            old = capability is not None and capability < (8, 9)
            return Notice("no_sm_89", {"capability": _dotted(capability)}) if old else None
        case "sm_90":
            capability = device.compute_capability
            old = capability is not None and capability < (9, 0)
            return Notice("no_sm_90", {"capability": _dotted(capability)}) if old else None
        case "sm_90a":
            capability = device.compute_capability
            other = capability is not None and capability != (9, 0)
            return Notice("no_sm_90a", {"capability": _dotted(capability)}) if other else None
        case "cxx" | "inductor":
            default = "c++" if need == "cxx" else "g++"
            return no_compiler("no_cxx_compiler", "CXX", (default,), need) or no_python_headers(need)
        case "two_hosts":
            return Notice("two_hosts")
        case _ if need in BACKENDS and BACKENDS[need].module:
            return no_package(BACKENDS[need])
        case _:
            return Notice("unknown_need", {"need": need})


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
    device = Device(
        id=f"cuda:{number}",
        kind="cuda",
        name=mig.name(uuid, nvml.text(nvml.ask(library.nvmlDeviceGetName, handle) or "NVIDIA GPU")),
        uuid=uuid,
        memory_bytes=None if memory is None else int(memory.total),
        multiprocessors=mig.multiprocessors(library, handle)
        or multiprocessors(nvml.ask(library.nvmlDeviceGetNumGpuCores, handle), capability),
        compute_capability=None if capability is None else (int(capability[0]), int(capability[1])),
        driver=None if driver is None else nvml.text(driver),
        driver_cuda=driver_cuda,
    )
    problem = device_problem(device)
    return msgspec.structs.replace(device, usable=False, reason=_sentence(problem)) if problem else device


def device_problem(device: Device) -> Notice | None:
    """Why the worker cannot run on a GPU; None when it can."""
    nvrtc = installed_versions(("nvidia-cuda-nvrtc",)).get("nvidia-cuda-nvrtc")
    problem = software_problem(device.driver, device.driver_cuda, device.compute_capability, torch_build(), nvrtc)
    reached = nvml.reached(device)
    undivided = reached is not None and mig.of(*reached) == ()
    return problem or (Notice("no_mig_slice") if undivided else None)


def multiprocessors(cores: int | None, capability: tuple[int, int] | None) -> int | None:
    """Multiprocessors from the count of cores, None where the architecture is not in the table.

    >>> multiprocessors(16896, (9, 0))
    132
    """
    each = None if capability is None else _CORES_A_MULTIPROCESSOR.get((capability[0], capability[1]))
    return cores // each if cores and each and cores % each == 0 else None


def software_problem(
    driver: str | None,
    driver_cuda: str | None,
    capability: tuple[int, int] | None,
    torch: TorchBuild | None,
    nvrtc: str | None = None,
) -> Notice | None:
    """Why the worker cannot run on a GPU with that driver; None when it can.

    `nvrtc`: the version of the installed compiler. It compiles the flush and the end marker, so the driver must support its
    CUDA version even when torch is built for an older one.
    """
    if torch is None:
        return Notice("no_torch")
    if torch.cuda is None:
        return Notice("torch_without_cuda", {"torch": torch.version, "release": torch.version.partition("+")[0]})
    needed: dict[NoticeKind, str] = {
        "driver_too_old": torch.cuda,
        "driver_too_old_for_nvrtc": ".".join((nvrtc or "0").split(".")[:2]),
    }
    for kind, cuda in needed.items():
        if driver_cuda is not None and _major(driver_cuda) < _major(cuda):
            return Notice(
                kind,
                {
                    "driver": driver,
                    "supported": driver_cuda,
                    "torch": torch.version,
                    "cuda": cuda,
                    "least_driver": _LEAST_DRIVER.get(_major(cuda)),
                },
            )
    if capability is not None and _major(torch.cuda) >= 13 and capability < _LEAST_CAPABILITY:
        return Notice("gpu_too_old", {"capability": _dotted(capability), "cuda": torch.cuda})
    return None


def _dotted(capability: tuple[int, int] | None) -> str:
    return ".".join(map(str, capability or ()))


def _major(version: str) -> int:
    match = re.match(r"\d+", version)
    return int(match.group()) if match else 0
