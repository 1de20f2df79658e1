"""NVIDIA's management library (NVML), opened once per process, or the reason why it cannot be opened."""

import functools
import importlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from kernelviz.core import Device
from kernelviz.core.notices import Notice, NoticeKind

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Nvml:
    """The opened library (the module ``pynvml``), or None with the reason."""

    library: Any | None
    problem: Notice | None = None


@functools.cache
def opened() -> Nvml:
    """The library, initialised at the first call and open for the life of the process."""
    try:
        pynvml: Any = importlib.import_module("pynvml")
    except ImportError:
        return Nvml(None, Notice("no_nvml"))
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        return Nvml(None, _problem(pynvml, error, gpu_files()))
    return Nvml(pynvml)


def gpu_files(dev: Path = Path("/dev")) -> tuple[str, ...]:
    """The device files of NVIDIA GPUs that this process sees, whether or not the driver's library is installed."""
    return tuple(sorted(str(f) for f in dev.glob("nvidia[0-9]*")))


def _problem(pynvml: Any, error: Any, files: tuple[str, ...]) -> Notice:
    value: Any = getattr(error, "value", None)
    if files and value == pynvml.NVML_ERROR_LIBRARY_NOT_FOUND:
        return Notice("no_driver_library", {"file": files[0]})
    kinds: dict[int, NoticeKind] = {
        pynvml.NVML_ERROR_LIBRARY_NOT_FOUND: "no_driver",
        pynvml.NVML_ERROR_DRIVER_NOT_LOADED: "no_driver",
        pynvml.NVML_ERROR_LIB_RM_VERSION_MISMATCH: "driver_updated",
        pynvml.NVML_ERROR_NO_PERMISSION: "driver_not_permitted",
    }
    return Notice(kinds.get(value, "driver_error"), {"error": str(error)})


def ask(question: Callable[..., T], *given: object) -> T | None:
    """The result of one library call, or None where this device or driver does not support it."""
    library = opened().library
    if library is None:
        return None
    try:
        return question(*given)
    except (library.NVMLError, AttributeError, UnicodeDecodeError):
        return None


def ask_for(library: Any, name: str, *given: object) -> Any | None:
    """The result of a library function by its name; None also where an older library does not have it."""
    question = getattr(library, name, None)
    return None if question is None else ask(question, *given)


def ask_device(device: Device, name: str) -> Any | None:
    """The result of a library function for a GPU, None for a processor and where the GPU or the driver does not answer."""
    gpu = reached(device)
    return None if gpu is None else ask_for(gpu[0], name, gpu[1])


def text(value: object) -> str:
    """A name as text; older libraries return bytes.

    >>> text(b"NVIDIA H200"), text("NVIDIA H200")
    ('NVIDIA H200', 'NVIDIA H200')
    """
    return value.decode(errors="replace") if isinstance(value, bytes) else str(value)


def reached(device: Device) -> tuple[Any, Any] | None:
    """The library and a GPU's handle; None for a processor, and where the driver does not answer for the GPU."""
    library = opened().library
    gpu = handle(device.uuid) if device.kind == "cuda" else None
    return None if library is None or gpu is None else (library, gpu)


def handle(uuid: str) -> Any | None:
    """The library's handle of the device with that UUID, None when the device is not there any more."""
    library = opened().library
    return None if library is None else ask(library.nvmlDeviceGetHandleByUUID, uuid)
