"""The device and the software versions, as this process sees them."""

import os
from collections.abc import Sequence

import msgspec
import torch

from kernelviz.core import Device, DeviceError, Environment, TracerFailure, UnknownName
from kernelviz.hardware import toolchain
from kernelviz.hardware.discovery import discover

_PACKAGES = (
    "torch",
    "triton",
    "cuda-core",
    "cuda-bindings",
    "cupti-python",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-cupti",
    "numpy",
)


def device_of(device_id: str) -> Device:
    """The discovered device, completed by torch's properties. Raises UnknownName, DeviceError with the remedy."""
    devices = {d.id: d for d in discover()}
    if device_id not in devices and not (device_id.startswith("cuda") and torch.cuda.is_available()):
        raise UnknownName("device", device_id, devices)
    if device_id == "cpu":
        return msgspec.structs.replace(devices["cpu"], threads=torch.get_num_threads())
    if not torch.cuda.is_available():
        raise DeviceError(
            devices[device_id].reason
            or f"the driver sees a GPU, torch {torch.__version__} (CUDA {torch.version.cuda}) does not; "
            "update the driver, or see what `python -c 'import torch; torch.cuda.init()'` says"
        )
    index = int(device_id.partition(":")[2] or 0)
    properties = torch.cuda.get_device_properties(index)
    known = devices.get(device_id) or Device(
        id=device_id, kind="cuda", name=properties.name, uuid=f"GPU-{properties.uuid}"
    )
    return msgspec.structs.replace(
        known,
        memory_bytes=properties.total_memory,
        last_level_cache_bytes=properties.L2_cache_size,
        multiprocessors=properties.multi_processor_count,
        compute_capability=(properties.major, properties.minor),
    )


_TRACERS = ("cupti", "kineto", "events")
"""Sources of the kernels' times in the order in which they are tried (`timing.tracers`); events cannot fail."""


def environment_of(device: Device, failures: Sequence[TracerFailure] | None) -> Environment:
    """The device with versions, host and threads; the store adds the roofs. `failures`: None where nothing is traced."""
    known = toolchain.environment_of(device, _PACKAGES)
    versions = dict(known.versions)
    versions["torch"] = str(torch.__version__)  # a subclass of str, which JSON does not know
    if torch.version.cuda:
        versions["cuda (torch)"] = torch.version.cuda
    return msgspec.structs.replace(
        known,
        versions=versions,
        threads=torch.get_num_threads() if device.kind == "cpu" else os.cpu_count(),
        tracer=None
        if failures is None
        else "; ".join([_TRACERS[len(failures)], *(f"{f.tracer}: {f.message or 'traced nothing'}" for f in failures)]),
        tracer_failures=tuple(failures) if failures else msgspec.UNSET,
    )
