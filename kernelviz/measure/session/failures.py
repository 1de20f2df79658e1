"""Convert an exception to a Failure with its stage and reason, and decide whether this process can continue."""

import errno
import os
import re

import torch

from kernelviz.core import DeviceError, DoesNotFit, Failure, UsageError
from kernelviz.core.errors import one_line, text_on_one_line
from kernelviz.core.reasons import (
    CacheNotWritable,
    CudaError,
    DiskFull,
    DoesNotFitMemory,
    Raised,
    Recompiled,
    Refused,
    TracerLostRecords,
)
from kernelviz.hardware import storage_folders
from kernelviz.measure.session.binding import NotBound, WrongOutput
from kernelviz.measure.session.compiler_errors import of_compiler
from kernelviz.measure.timing.timer import raised_by_call
from kernelviz.measure.timing.trace import TraceError, WrongWork

_STICKY_ERRORS = {
    214: "ECC_UNCORRECTABLE",
    220: "NVLINK_UNCORRECTABLE",
    226: "CONTAINED",
    700: "ILLEGAL_ADDRESS",
    702: "LAUNCH_TIMEOUT",
    709: "CONTEXT_IS_DESTROYED",
    710: "ASSERT",
    714: "HARDWARE_STACK_ERROR",
    715: "ILLEGAL_INSTRUCTION",
    716: "MISALIGNED_ADDRESS",
    717: "INVALID_ADDRESS_SPACE",
    718: "INVALID_PC",
    719: "LAUNCH_FAILED",
    721: "TENSOR_MEMORY_LEAK",
    810: "MPS_CLIENT_TERMINATED",
    911: "EXTERNAL_DEVICE",
    999: "UNKNOWN",
}
"""CUDA errors after which driver_types.h (13.0) says that the process must end, uncorrectable errors of memory and NVLink, and
the unknown error: the number, which is the same in runtime and driver, and the driver's name without ``CUDA_ERROR_``."""
_DRIVER_NAME = re.compile(r"\bCUDA_ERROR_([A-Z_]+)")
"""A driver's name, with which messages of cuda.core begin."""
_STICKY = (
    "illegal memory access",
    "misaligned address",
    "illegal instruction",
    "illegal address",
    "device-side assert triggered",  # torch's advice after every other CUDA error speaks of device-side assertions
    "hardware stack error",
    "invalid program counter",
    "operation not supported on global/shared address space",
    "context is destroyed",
    "launch failure",
    "launch timed out",
    "uncorrectable ecc",
    "uncorrectable nvlink",
    "cuda error: unknown error",
    "triton error [cuda]: unknown error",
)
"""What the driver and the runtime say of these errors, in lower case: in messages of Triton, and of torch without a number."""


def sticky(error: BaseException) -> bool:
    """Whether this is a CUDA error that every later call returns as well, so that this process can no longer use the GPU.

    An operation that is not permitted during a capture is not sticky: the next call works.
    """
    error = raised_by_call(error)
    code = getattr(error, "error_code", None) if isinstance(error, torch.AcceleratorError) else None
    if isinstance(code, int):
        return code in _STICKY_ERRORS
    text = str(error)
    if names := _DRIVER_NAME.findall(text):
        return not set(names).isdisjoint(_STICKY_ERRORS.values())
    return any(sign in text.lower() for sign in _STICKY)


def out_of_memory(error: BaseException) -> bool:
    error = raised_by_call(error)
    return isinstance(error, torch.OutOfMemoryError | MemoryError) or "can't allocate memory" in str(error).lower()


def _disk_full(error: BaseException) -> DiskFull | None:
    """The folders of the compilers if a compiler or a cache ran out of disk space, else None."""
    full = (errno.ENOSPC, errno.EDQUOT)
    if not any(
        (isinstance(e, OSError) and e.errno in full) or "no space left on device" in str(e).lower()
        for e in _chain(error)
    ):
        return None
    return storage_folders.filled(storage_folders.look(storage_folders.folders(os.environ)))


def _not_writable(error: BaseException) -> CacheNotWritable | None:
    """The compiler's cache that cannot be written (no permission, a read-only disk), else None."""
    denied = (errno.EACCES, errno.EPERM, errno.EROFS)
    errors = [e for e in _chain(error) if isinstance(e, OSError) and e.errno in denied]
    reasons = (storage_folders.refused(os.environ, e.filename) for e in errors if isinstance(e.filename, str))
    return next((reason for reason in reasons if reason is not None), None)


def failure(error: BaseException) -> Failure:
    """The Failure for an exception of a variant, in its bind or in a call."""
    error = raised_by_call(error)
    if isinstance(error, DoesNotFit):
        needs = DoesNotFitMemory(needed_bytes=error.needed_bytes, free_bytes=error.free_bytes, device=error.device)
        return Failure(stage="out_of_memory", reasons=(needs,))
    folders_fault = _disk_full(error) or _not_writable(error)
    if folders_fault is not None:
        return Failure(stage="compile", reasons=(folders_fault,), message=one_line(error, 300))
    for e in _chain(error):
        if isinstance(e, Refused) and isinstance(e.reason, Recompiled):
            return Failure(stage="wrong", reasons=(e.reason,))
    if out_of_memory(error):
        return Failure(stage="out_of_memory", message=one_line(error))
    if isinstance(error, WrongOutput | WrongWork):
        return Failure(stage="wrong", reasons=(error.reason,))
    if isinstance(error, NotBound):
        return Failure(stage="crash", reasons=(error.reason,))
    if isinstance(error, ImportError | DeviceError | UsageError):
        return Failure(stage="unavailable", message=one_line(error))
    if isinstance(error, TraceError):
        return Failure(stage="crash", reasons=(TracerLostRecords(),), message=str(error))
    if sticky(error):
        return Failure(stage="crash", reasons=(CudaError(),), message=one_line(error))
    if any(of_compiler(e) for e in _chain(error)):
        return Failure(stage="compile", message=one_line(error))
    return Failure(stage="crash", reasons=(Raised(type=type(error).__name__),), message=text_on_one_line(error))


def _chain(error: BaseException) -> list[BaseException]:
    chain: list[BaseException] = []
    current: BaseException | None = error
    while current is not None and current not in chain:
        chain.append(current)
        current = getattr(current, "inner_exception", None) or current.__cause__ or current.__context__
    return chain
