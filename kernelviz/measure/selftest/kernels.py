"""The selftest's own kernels, bound to tensors: an empty one, copies and reads of known traffic."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelviz.measure.timing.kernels import SOURCE as INSTRUMENTS
from kernelviz.ops import Launch
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).parent / "probes.cu"
EMPTY = "kernelviz_empty"
VECTOR_BYTES = 16
THREADS = 512
READS = {"normal": "kernelviz_probe_read", "evict_last": "kernelviz_probe_read_evict_last"}
READ_KINDS = (*READS, "persisting", "warm")
"""The profiled reads: normal and evict-last loads, normal loads of a persisting window, and a read directly after itself."""
READ_BYTES = 16 * 2**20
_GUARD = ctypes.c_uint(0xFFFFFFFF)


def vectors(count: int, device: torch.device) -> Tensor:
    """`count` 16-byte vectors of random values below 2^30, so that no vector has all bits set, which the reads test."""
    return torch.randint(0, 2**30, (count * 4,), dtype=torch.int32, device=device)


def empty() -> Launch:
    """A kernel that does nothing; it has no output."""
    kernel = nvrtc.kernel(INSTRUMENTS, EMPTY)

    def launch() -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, 1, 32)
        return ()

    return launch


def copy(source: Tensor, target: Tensor, count: int) -> Launch:
    """A copy of the first `count` vectors of `source`; the kernel is the same for every count."""
    kernel = nvrtc.kernel(SOURCE, "kernelviz_probe_copy")
    blocks = -(-count // THREADS)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, source.data_ptr(), target.data_ptr(), ctypes.c_longlong(count))
        return target[: 4 * count]

    return launch


def read(source: Tensor, kind: str = "normal") -> Launch:
    """A read of all of `source`, with normal loads or with evict_last loads; it writes nothing."""
    kernel = nvrtc.kernel(SOURCE, READS[kind])
    count = source.numel() // 4
    sink = torch.zeros(1, dtype=torch.int32, device=source.device)
    blocks = -(-count // THREADS)

    def launch() -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, THREADS, source.data_ptr(), ctypes.c_longlong(count), _GUARD, sink.data_ptr())
        return ()

    return launch


def wave_vectors(device: torch.device) -> int:
    """The number of 16-byte vectors that one full wave of copy blocks moves."""
    properties = torch.cuda.get_device_properties(device)
    resident: int = properties.multi_processor_count * (properties.max_threads_per_multi_processor // THREADS)
    return resident * THREADS


@contextmanager
def persisting(source: torch.Tensor) -> Iterator[None]:
    """A new current stream whose accesses to `source` are persisting, as far as the device's limit allows."""
    from cuda.bindings import runtime

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    value: Any = runtime.cudaStreamAttrValue()
    value.accessPolicyWindow.base_ptr = source.data_ptr()
    value.accessPolicyWindow.num_bytes = source.numel() * source.element_size()
    value.accessPolicyWindow.hitRatio = 1.0
    value.accessPolicyWindow.hitProp = runtime.cudaAccessProperty.cudaAccessPropertyPersisting
    value.accessPolicyWindow.missProp = runtime.cudaAccessProperty.cudaAccessPropertyStreaming
    name = runtime.cudaStreamAttrID.cudaLaunchAttributeAccessPolicyWindow
    torch.cuda.synchronize()
    (status,) = runtime.cudaStreamSetAttribute(stream.cuda_stream, name, value)
    if int(status) != 0:
        raise RuntimeError(f"the access window could not be set: {status}")
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        torch.cuda.synchronize()
