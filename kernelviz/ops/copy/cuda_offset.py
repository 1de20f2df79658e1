"""The CUDA C++ kernels of `copy` on vectors that begin some bytes after an aligned address."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.copy.cuda import BEYOND, BULK, CHUNK_BYTES, THREADS, WITHIN
from kernelviz.ops.copy.cuda import SOURCE as ALIGNED_SOURCE
from kernelviz.ops.copy.offset import elements_before_16_bytes, empty_at, require_16_bytes
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.one_element import OneElement
from kernelviz.ops.kernels.vec16 import UNROLLED, VEC16_BYTES, Layout, adaptive, aligned, whole_vectors

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_offset.cu"


def bind_scalar(x_N: Tensor, offset_bytes: int) -> Launch:
    """One element a thread, at any address. All binds raise BadField for a vector that is not contiguous."""
    require_contiguous(x_N=x_N)
    out_N, n = empty_at(x_N, offset_bytes), x_N.numel()
    one = OneElement(n)
    kernel = nvrtc.kernel(ALIGNED_SOURCE, "copy_scalar", {"ELEMENT": nvrtc.element_type(x_N.dtype), **one.defines})
    blocks, threads, arguments = one.blocks, one.threads, (x_N.data_ptr(), out_N.data_ptr(), one.last)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return out_N

    return launch


def bind_vec16(x_N: Tensor, offset_bytes: int) -> Launch:
    """16 bytes a thread from the first multiple of 16 bytes on; the elements before and after whole vectors one by one."""
    require_contiguous(x_N=x_N)
    out_N, n = empty_at(x_N, offset_bytes), x_N.numel()
    head = min(n, elements_before_16_bytes(x_N))
    kernel = nvrtc.kernel(SOURCE, "copy_peeled", {"ELEMENT": nvrtc.element_type(x_N.dtype)})
    blocks = max(1, -(-whole_vectors(x_N[head:]) // THREADS))
    arguments = (x_N.data_ptr(), out_N.data_ptr(), ctypes.c_longlong(n), ctypes.c_int(head))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments)
        return out_N

    return launch


def bind_unrolled(x_N: Tensor, offset_bytes: int) -> Launch:
    """Four 16-byte vectors a thread. Raises BadField for vectors that do not begin on 16 bytes."""
    return _bind_vectors(x_N, offset_bytes, UNROLLED)


def bind_adaptive(x_N: Tensor, offset_bytes: int) -> Launch:
    """As many vectors a thread as suit the size; `bind_vec16` for vectors that do not begin on 16 bytes."""
    if not aligned(x_N):
        return bind_vec16(x_N, offset_bytes)
    written_bytes = x_N.numel() * x_N.element_size()
    layout = adaptive(whole_vectors(x_N), written_bytes, x_N.device, within=WITHIN, beyond=BEYOND)
    return _bind_vectors(x_N, offset_bytes, layout)


def bind_bulk(x_N: Tensor, offset_bytes: int) -> Launch:
    """Bulk copies through shared memory. Raises BadField for vectors that do not begin on 16 bytes, as such copies must."""
    require_contiguous(x_N=x_N)
    require_16_bytes(x_N, offset_bytes)
    out_N = empty_at(x_N, offset_bytes)
    kernel = nvrtc.kernel(BULK, "copy_bulk")
    whole = whole_vectors(x_N) * VEC16_BYTES
    tail = ctypes.c_int(x_N.numel() * x_N.element_size() - whole)
    arguments = (x_N.data_ptr(), out_N.data_ptr(), ctypes.c_longlong(whole), tail)

    def launch() -> Tensor:
        nvrtc.launch(kernel, max(1, -(-whole // CHUNK_BYTES)), 32, *arguments)
        return out_N

    return launch


def _bind_vectors(x_N: Tensor, offset_bytes: int, layout: Layout) -> Launch:
    require_contiguous(x_N=x_N)
    require_16_bytes(x_N, offset_bytes)
    out_N = empty_at(x_N, offset_bytes)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype), **layout.defines}
    kernel = nvrtc.kernel(ALIGNED_SOURCE, "copy_vectors", defines)
    blocks = layout.blocks(whole_vectors(x_N))
    arguments = (x_N.data_ptr(), out_N.data_ptr(), ctypes.c_longlong(x_N.numel()))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, layout.threads, *arguments)
        return out_N

    return launch
