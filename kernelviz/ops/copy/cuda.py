"""CUDA C++ kernels of `copy` and `strided_copy`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element, one_vector, some_vectors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.one_element import Index, OneElement
from kernelviz.ops.kernels.vec16 import UNROLLED, VEC16_BYTES, Layout, adaptive, aligned, whole_vectors

if TYPE_CHECKING:
    from torch import Tensor

SOURCE, BULK, STRIDED = (Path(__file__).parent / name for name in ("cuda.cu", "cuda_bulk.cu", "cuda_strided.cu"))
THREADS = 256
WITHIN, BEYOND = Layout(vectors=1, threads=256, streaming=True), Layout(vectors=1, threads=128, streaming=False)
"""Layouts for outputs that fit into the L2, and for those that do not.

On an H200 2^28 floats take 495 us so, 499 in blocks of 256, 518 of 1024, 502 two vectors a thread, 522 four.
"""
CHUNK_BYTES = 2048
"""Bytes that a block of `copy_bulk` copies."""


def bind_scalar(x_N: Tensor) -> Launch:
    """One element a thread."""
    return _bind("copy_scalar", x_N, one_element(x_N))


def bind_vec16(x_N: Tensor) -> Launch:
    """16 bytes a thread; one element a thread for views that do not start on 16 bytes, where such loads would fault."""
    if not aligned(x_N):
        return bind_scalar(x_N)
    return _bind("copy_vec16", x_N, one_vector(x_N))


def bind_unrolled(x_N: Tensor) -> Launch:
    """Four 16-byte vectors a thread."""
    return _bind_vectors(x_N, UNROLLED)


def bind_adaptive(x_N: Tensor) -> Launch:
    """As many vectors a thread as suit the size."""
    return _bind_vectors(
        x_N, adaptive(whole_vectors(x_N), x_N.numel() * x_N.element_size(), x_N.device, within=WITHIN, beyond=BEYOND)
    )


def bind_bulk(x_N: Tensor) -> Launch:
    """Bulk copies through shared memory; one element a thread for views that do not start on 16 bytes."""
    import torch

    require_contiguous(x_N=x_N)
    if not aligned(x_N):
        return bind_scalar(x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(BULK, "copy_bulk")
    whole = whole_vectors(x_N) * VEC16_BYTES
    tail = ctypes.c_int(x_N.numel() * x_N.element_size() - whole)
    blocks = max(1, -(-whole // CHUNK_BYTES))
    pointers, count = (x_N.data_ptr(), out_N.data_ptr()), ctypes.c_longlong(whole)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, 32, *pointers, count, tail)
        return out_N

    return launch


def _bind_vectors(x_N: Tensor, layout: Layout) -> Launch:
    if not aligned(x_N):
        return bind_scalar(x_N)
    return _bind("copy_vectors", x_N, some_vectors(x_N, layout))


def _bind(
    name: str,
    x_N: Tensor,
    flat: FlatLaunch,
) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_N.dtype), **flat.defines})
    pointers = (x_N.data_ptr(), out_N.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, flat.size)
        return out_N

    return launch


def bind_strided_scalar(x_NS: Tensor) -> Launch:
    """One element a thread."""
    return _bind_strided("strided_scalar", x_NS, OneElement(*x_NS.shape))


def bind_strided_vec16(x_NS: Tensor) -> Launch:
    """A 16-byte vector of the output a thread; one element per thread for views that do not start on 16 bytes."""
    if not aligned(x_NS):
        return bind_strided_scalar(x_NS)
    return _bind_strided("strided_vec16", x_NS, VEC16_BYTES // x_NS.element_size())


def bind_strided_unrolled(x_NS: Tensor) -> Launch:
    """Four elements a thread."""
    return _bind_strided("strided_unrolled", x_NS, 4)


def bind_strided_adaptive(x_NS: Tensor) -> Launch:
    """A plain copy at a stride of 1, whole vectors of fp32 below 16 bytes, else as many elements per thread as fit the stride."""
    require_contiguous(x_NS=x_NS)
    if x_NS.shape[1] == 1:
        return bind_adaptive(x_NS.view(-1))
    stride_bytes = x_NS.shape[1] * x_NS.element_size()
    # On an H200 2^24 fp32 at 8 bytes: 44.1 us, 48.6 with eight elements a thread; bf16 at 4 bytes 40.9 and 24.3.
    if x_NS.element_size() == 4 and stride_bytes < VEC16_BYTES:
        return bind_strided_vec16(x_NS)
    each = elements_a_thread(stride_bytes)
    return bind_strided_scalar(x_NS) if each == 1 else _bind_strided("strided_unrolled", x_NS, each)


def elements_a_thread(stride_bytes: int) -> int:
    """On an H200, 2^24 bf16 at 4 bytes: 45.6, 28.9 and 24.3 us with 1, 2 and 4; fp32 at 256 bytes: 391, 410 and 436 us.

    >>> [elements_a_thread(b) for b in (4, 16, 32, 64, 256)]
    [4, 4, 2, 1, 1]
    """
    if stride_bytes <= 16:
        return 4
    return 2 if stride_bytes < 64 else 1


def _bind_strided(name: str, x_NS: Tensor, each: int | OneElement) -> Launch:
    """`each`: elements of a thread."""
    import torch

    require_contiguous(x_NS=x_NS)
    n, stride = x_NS.shape
    out_N = torch.empty(n, dtype=x_NS.dtype, device=x_NS.device)
    defines = {"ELEMENT": "unsigned" if x_NS.element_size() == 4 else "unsigned short"}
    sizes: tuple[Index, Index]
    if isinstance(each, OneElement):
        defines |= each.defines
        blocks, threads, sizes = each.blocks, each.threads, (each.last, each.index(stride))
    else:
        if name == "strided_unrolled":
            defines |= {"EACH": str(each)}
        blocks, threads = -(-n // (each * THREADS)), THREADS
        sizes = (ctypes.c_longlong(n), ctypes.c_longlong(stride))
    kernel = nvrtc.kernel(STRIDED, name, defines)
    pointers = (x_NS.data_ptr(), out_N.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *sizes)
        return out_N

    return launch
