"""The CUDA C++ kernel that copies the rows that ids name in slices, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "slices.cu"
WARP, THREADS, VECTORS = 32, 256, 4
"""The most threads of a block, and 16-byte vectors of a thread: at most 16 KiB of a slice."""
UNITS = {2: "unsigned short", 4: "unsigned"}


@dataclass(frozen=True, slots=True)
class Slices:
    """Threads of a block, 16-byte vectors of a thread, and slices of a row."""

    threads: int
    vectors: int
    count: int


def slices_of_row(t: int, row_bytes: int, count: int, vectors: int | None = None) -> Slices:
    """The slices of each of t rows of so many bytes on a GPU of `count` SMs, with as few idle threads as whole warps allow.

    One vector a thread where the SMs would otherwise have fewer than two slices each, and where a slice is no more than a vector
    for each thread.

    >>> slices_of_row(4, 270_754_128, 132), slices_of_row(4, 65536, 132)
    (Slices(threads=256, vectors=4, count=16526), Slices(threads=256, vectors=1, count=16))
    >>> slices_of_row(7683, 11908, 132), slices_of_row(7757, 786, 132)
    (Slices(threads=192, vectors=4, count=1), Slices(threads=64, vectors=1, count=1))
    """
    in_all = -(-row_bytes // VEC16_BYTES)
    if vectors is None:
        several = t * -(-in_all // (THREADS * VECTORS)) >= 2 * count and in_all > THREADS
        vectors = VECTORS if several else 1
    slices = -(-in_all // (THREADS * vectors))
    threads = -(-in_all // (slices * vectors * WARP)) * WARP
    return Slices(threads, vectors, -(-in_all // (threads * vectors)))


def bind_slices(x_VD: Tensor, ids_T: Tensor, *, vectors: int | None = None) -> Launch:
    """The same slice of all rows at about the same time; raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    (t,), d, size = ids_T.shape, x_VD.shape[1], x_VD.element_size()
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    slices = slices_of_row(t, d * size, multiprocessors(x_VD.device), vectors)
    defines = {"UNIT": UNITS[size], "VECTORS": str(slices.vectors), "THREADS": str(slices.threads)}
    kernel = nvrtc.kernel(SOURCE, "gather_slices", defines)
    grid = (t, min(slices.count, LARGEST_GRID_Y))  # a block copies several slices of longer rows
    sizes = (ctypes.c_longlong(d), ctypes.c_longlong(x_VD.numel()), ctypes.c_int(slices.count))
    pointers = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, grid, slices.threads, *pointers, *sizes)
        return out_TD

    return launch
