"""Slices of a divided GPU (MIG, NVIDIA Multi-Instance GPU User Guide): their numbering by CUDA and their properties."""

from collections.abc import Mapping
from typing import Any

from kernelviz.core import Device
from kernelviz.core.notices import MigState, Notice
from kernelviz.hardware import nvml


def of(library: Any, handle: Any) -> tuple[str, ...] | None:
    """The UUIDs of a GPU's slices that this process sees; None when it is not divided, or is a slice itself."""
    mode = nvml.ask_for(library, "nvmlDeviceGetMigMode", handle)
    if mode is None or mode[0] != 1:
        return None
    count = nvml.ask(library.nvmlDeviceGetMaxMigDeviceCount, handle) or 0
    handles = (nvml.ask(library.nvmlDeviceGetMigDeviceHandleByIndex, handle, i) for i in range(count))
    uuids = (nvml.ask(library.nvmlDeviceGetUUID, one) for one in handles if one is not None)
    return tuple(nvml.text(uuid) for uuid in uuids if uuid is not None)


def enumerated(visible: tuple[str, ...], divided: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """The visible devices that CUDA numbers, then divided GPUs that it does not number.

    A process gets only one slice, the first, and then no whole GPU (MIG User Guide, "CUDA Device Enumeration").

    >>> enumerated(("GPU-a", "GPU-b"), {"GPU-b": ("MIG-1", "MIG-2")})
    ('MIG-1',)
    >>> enumerated(("GPU-a", "GPU-b"), {"GPU-a": ()})
    ('GPU-b', 'GPU-a')
    """
    for uuid in visible:
        if is_slice(uuid):
            return (uuid,)
        if divided.get(uuid):
            return divided[uuid][:1]
    return tuple(sorted(visible, key=lambda uuid: uuid in divided))


def is_slice(uuid: str) -> bool:
    return uuid.startswith("MIG-")


def whole(library: Any, handle: Any) -> Any:
    """The handle of a slice's GPU; a GPU's own handle as it is."""
    parent = nvml.ask_for(library, "nvmlDeviceGetDeviceHandleFromMigDeviceHandle", handle)
    return handle if parent is None else parent


def name(uuid: str, known: str) -> str:
    """A slice's name, never its GPU's name alone, because the GPU's data sheet does not apply to the slice.

    >>> name("MIG-1", "NVIDIA H200 MIG 1g.18gb"), name("MIG-1", "NVIDIA H200"), name("GPU-a", "NVIDIA H200")
    ('NVIDIA H200 MIG 1g.18gb', 'NVIDIA H200 MIG slice', 'NVIDIA H200')
    """
    return f"{known} MIG slice" if is_slice(uuid) and " MIG" not in known else known


def multiprocessors(library: Any, handle: Any) -> int | None:
    """The multiprocessors of a slice; None for a whole GPU, or where the driver does not report them."""
    attributes = nvml.ask_for(library, "nvmlDeviceGetAttributes_v2", handle)
    return None if attributes is None else int(attributes.multiprocessorCount) or None


def state(device: Device) -> MigState:
    """Whether a GPU is divided, or is itself a slice of one."""
    if is_slice(device.uuid):
        return "slice"
    mode = nvml.ask_device(device, "nvmlDeviceGetMigMode")
    if mode is None:
        return "unknown"
    return "divided" if mode[0] == 1 else "off"


def mig(device: Device) -> Notice | None:
    """A notice for measurements on a slice; None for another device."""
    if not is_slice(device.uuid):
        return None
    return Notice(
        "mig_slice",
        {"multiprocessors": device.multiprocessors, "memory_bytes": device.memory_bytes},
        subject="mig",
        severity="info",
    )
