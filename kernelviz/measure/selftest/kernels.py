"""The selftest's own kernels, bound to tensors: copies and reads of known traffic, and accesses that persist in the L2."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kernelviz.ops import Launch
from kernelviz.ops.kernels import nvrtc

SOURCE = Path(__file__).parent / "probes.cu"
VECTOR_BYTES = 16
THREADS = 512
READS = {"normal": "kernelviz_probe_read", "evict_last": "kernelviz_probe_read_evict_last"}
READ_KINDS = (*READS, "persisting", "warm")
"""The profiled reads: normal and evict-last loads, normal loads of a persisting window, and a read directly after itself."""
READ_BYTES = 16 * 2**20
SMALL_READ_BYTES = 64 * 2**10
READ_SIZES_BYTES = (READ_BYTES, SMALL_READ_BYTES)
"""Reads of twice the L2 alone leave less than 1 % of 16 MiB that were read with the priority evict_last: within the limit, but
enough to shorten a small read (docs/measuring.md, "Lines with the priority evict_last")."""
_GUARD = ctypes.c_uint(0xFFFFFFFF)


def vectors(count: int, device: torch.device) -> Tensor:
    """`count` 16-byte vectors of random values below 2^30, so that no vector has all bits set, which the reads test."""
    return torch.randint(0, 2**30, (count * 4,), dtype=torch.int32, device=device)


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


def persisting_window(tensor: Tensor, size_bytes: int) -> tuple[Any, Any]:
    """Name and value of the stream attribute by which accesses to the first bytes of a tensor are persisting."""
    from cuda.bindings import runtime

    value: Any = runtime.cudaStreamAttrValue()
    value.accessPolicyWindow.base_ptr = tensor.data_ptr()
    value.accessPolicyWindow.num_bytes = size_bytes
    value.accessPolicyWindow.hitRatio = 1.0
    value.accessPolicyWindow.hitProp = runtime.cudaAccessProperty.cudaAccessPropertyPersisting
    value.accessPolicyWindow.missProp = runtime.cudaAccessProperty.cudaAccessPropertyStreaming
    return runtime.cudaStreamAttrID.cudaLaunchAttributeAccessPolicyWindow, value


@contextmanager
def persisting(source: Tensor) -> Iterator[None]:
    """A new current stream whose accesses to `source` are persisting, as far as the device's limit allows."""
    from cuda.bindings import runtime

    stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
    window = persisting_window(source, source.numel() * source.element_size())
    torch.cuda.synchronize()
    (status,) = runtime.cudaStreamSetAttribute(stream.cuda_stream, *window)
    if int(status) != 0:
        raise RuntimeError(f"the access window could not be set: {status}")
    try:
        with torch.cuda.stream(stream):
            yield
    finally:
        torch.cuda.synchronize()
