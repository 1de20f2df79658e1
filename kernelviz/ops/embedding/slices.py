"""The CUDA C++ kernel that copies the rows that ids name in slices, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.embedding.cuda import vector_bytes
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
THIN = ((2**8, THREADS), (2**11, 64))
"""Rows up to which a block has at most so many threads; of more, a warp. Until an id is named again, the L2 has to keep a slice
of most rows and as much of what is written. H200: 3,064 ids of 808 rows of 157 KB take 202.7 us by 16 KiB, 183.2 by 4 KiB and
180.1 in torch, whose blocks copy 4 KiB by one vector a thread; 4,096 of 1,024 of 131 KB 220.3, 199.3 and 201.7. The limits are
estimates."""
UNITS = {2: "unsigned short", 4: "unsigned"}


@dataclass(frozen=True, slots=True)
class Slices:
    """Threads of a block, 16-byte vectors of a thread, and slices of a row."""

    threads: int
    vectors: int
    count: int


def slices_of_row(v: int, t: int, row_bytes: int, count: int, vectors: int | None = None) -> Slices:
    """The slices of each of t rows of so many bytes out of v on a GPU of `count` SMs, with as few idle threads as whole warps
    allow.

    One vector a thread where the SMs would otherwise have fewer than two slices each, and where a slice is no more than a vector
    for each thread; fewer threads where many rows would leave the L2 before they are named again.

    >>> slices_of_row(2, 4, 270_754_128, 132), slices_of_row(2, 4, 65536, 132)
    (Slices(threads=256, vectors=4, count=16526), Slices(threads=256, vectors=1, count=16))
    >>> slices_of_row(91, 7683, 11908, 132), slices_of_row(91, 7757, 786, 132)
    (Slices(threads=192, vectors=4, count=1), Slices(threads=64, vectors=1, count=1))
    >>> slices_of_row(808, 3064, 156_656, 132), slices_of_row(4000, 16384, 32768, 132)
    (Slices(threads=64, vectors=4, count=39), Slices(threads=32, vectors=4, count=16))
    """
    in_all, most = -(-row_bytes // VEC16_BYTES), THREADS
    if vectors is None:
        several = t * -(-in_all // (THREADS * VECTORS)) >= 2 * count and in_all > THREADS
        vectors = VECTORS if several else 1
        if several:
            most = next((threads for rows, threads in THIN if min(v, t) <= rows), WARP)
    slices = -(-in_all // (most * vectors))
    threads = -(-in_all // (slices * vectors * WARP)) * WARP
    return Slices(threads, vectors, -(-in_all // (threads * vectors)))


def bind_slices(x_VD: Tensor, ids_T: Tensor, *, vectors: int | None = None) -> Launch:
    """The same slice of all rows at about the same time; raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    (t,), (v, d), size = ids_T.shape, x_VD.shape, x_VD.element_size()
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    slices = slices_of_row(v, t, d * size, multiprocessors(x_VD.device), vectors)
    whole = vector_bytes(x_VD) == VEC16_BYTES
    tile = {"VECTORS": slices.vectors, "THREADS": slices.threads, "WHOLE": int(whole)}
    defines = {"UNIT": UNITS[size]} | {name: str(number) for name, number in tile.items()}
    kernel = nvrtc.kernel(SOURCE, "gather_slices", defines)
    grid = (t, min(slices.count, LARGEST_GRID_Y))  # a block copies several slices of longer rows
    sizes = (ctypes.c_longlong(d), ctypes.c_longlong(x_VD.numel()), ctypes.c_int(slices.count))
    pointers = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, grid, slices.threads, *pointers, *sizes)
        return out_TD

    return launch
