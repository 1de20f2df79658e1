"""GPU memory that another process may open: allocated outside torch's pools, in whose blocks an IPC handle would show other
tensors.

Source: CUDA Driver API, "Memory Management", cuIpcGetMemHandle and cuIpcOpenMemHandle.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kernelviz.core import KernelvizError


class ShareError(KernelvizError):
    """The GPU's memory cannot be shared between processes; the message holds the driver's error."""


def allocate(size_bytes: int) -> int:
    """The address of so many bytes on the current device. Raises torch.OutOfMemoryError, ShareError."""
    from cuda.bindings import driver

    code, pointer = driver.cuMemAlloc(size_bytes)
    if code == driver.CUresult.CUDA_ERROR_OUT_OF_MEMORY:
        raise torch.OutOfMemoryError(f"{size_bytes} bytes for the judge")
    _check("cuMemAlloc", code)
    return int(pointer)


def free(pointer: int) -> None:
    """Free what `allocate` returned."""
    from cuda.bindings import driver

    _check("cuMemFree", driver.cuMemFree(pointer)[0])


def handle_of(pointer: int) -> bytes:
    """The handle by which another process opens this memory."""
    from cuda.bindings import driver

    code, handle = driver.cuIpcGetMemHandle(pointer)
    _check("cuIpcGetMemHandle", code)
    return bytes(handle.reserved)


def opened(handle: bytes) -> int:
    """The address of another process's memory in this process. Raises ShareError."""
    from cuda.bindings import driver

    wanted = driver.CUipcMemHandle()
    wanted.reserved = handle
    flags = driver.CUipcMem_flags.CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS
    code, pointer = driver.cuIpcOpenMemHandle(wanted, flags.value)
    _check("cuIpcOpenMemHandle", code)
    return int(pointer)


class _Bytes:
    """Memory described by the CUDA array interface, version 3 (Numba's documentation)."""

    def __init__(self, pointer: int, size_bytes: int) -> None:
        self.__cuda_array_interface__: dict[str, Any] = {
            "shape": (size_bytes,), "typestr": "|u1", "data": (pointer, False), "version": 3,
        }  # fmt: skip


def as_tensor(pointer: int, size_bytes: int, device: torch.device) -> Tensor:
    """The memory at an address as bytes; it is not freed with the tensor."""
    return torch.as_tensor(_Bytes(pointer, size_bytes), device=device)


def _check(call: str, code: Any) -> None:
    if int(code) != 0:
        raise ShareError(f"{call} failed: {getattr(code, 'name', code)}")
