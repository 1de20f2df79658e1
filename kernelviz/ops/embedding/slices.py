"""The CUDA C++ kernel that copies the rows that ids name in slices, bound to tensors."""

from __future__ import annotations

import ctypes
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
THREADS, VECTORS = 256, 4
"""Of a slice: 16 KiB."""
UNITS = {2: "unsigned short", 4: "unsigned"}


def slices_of_row(t: int, row_bytes: int, count: int, vectors: int | None = None) -> tuple[int, int]:
    """16-byte vectors of a thread, and slices of a row of so many bytes, if t rows are copied by a GPU of `count` SMs.

    One vector a thread where the SMs would otherwise have fewer than two slices each.

    >>> slices_of_row(4, 270_754_128, 132), slices_of_row(4, 65536, 132), slices_of_row(1, 2, 132)
    ((4, 16526), (1, 16), (1, 1))
    """
    in_all = -(-row_bytes // VEC16_BYTES)
    if vectors is None:
        vectors = VECTORS if t * -(-in_all // (THREADS * VECTORS)) >= 2 * count else 1
    return vectors, -(-in_all // (THREADS * vectors))


def bind_slices(x_VD: Tensor, ids_T: Tensor, *, vectors: int | None = None) -> Launch:
    """The same slice of all rows at about the same time; raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    (t,), d, size = ids_T.shape, x_VD.shape[1], x_VD.element_size()
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    vectors, slices = slices_of_row(t, d * size, multiprocessors(x_VD.device), vectors)
    kernel = nvrtc.kernel(SOURCE, "gather_slices", {"UNIT": UNITS[size], "VECTORS": str(vectors)})
    grid = (t, min(slices, LARGEST_GRID_Y))  # a block copies several slices of longer rows
    sizes = (ctypes.c_longlong(d), ctypes.c_longlong(x_VD.numel()), ctypes.c_int(slices))
    pointers = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, grid, THREADS, *pointers, *sizes)
        return out_TD

    return launch
