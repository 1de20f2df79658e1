"""CUDA C++ kernels of the fp32 ladder of `matmul` up to the double buffer (fp32.cu), bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "fp32.cu"
TILE_AND_THREADS: dict[str, tuple[tuple[int, int], tuple[int, int]]] = {
    "matmul_rows_across_threads": ((32, 8), (32, 8)),
    "matmul_register_column": ((64, 64), (512, 1)),
    "matmul_register_tile": ((128, 128), (256, 1)),
    "matmul_vec16": ((128, 128), (256, 1)),
    "matmul_warp_tile": ((128, 128), (256, 1)),
    "matmul_double_buffer": ((128, 128), (256, 1)),
}
"""Rows and columns of C that a block computes, and its threads in x and y, of each kernel of fp32.cu."""


def bind(name: str, a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Launch of a kernel of fp32.cu over contiguous matrices (M, K) and (K, N) in fp32.

    Raises BadField for matrices that are not contiguous, and for more columns than a grid has.
    """
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    (rows, columns), threads = TILE_AND_THREADS[name]
    blocks = (-(-m // rows), -(-n // columns))
    if blocks[1] > LARGEST_GRID_Y:
        raise BadField("size n", n, f"this kernel takes at most {LARGEST_GRID_Y * columns} columns")
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    aligned = k % 4 == 0 and n % 4 == 0 and all(t.data_ptr() % 16 == 0 for t in (a_MK, b_KN, c_MN))
    kernel = nvrtc.kernel(SOURCE, name, {"VECTORS": str(int(aligned))})
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_longlong(k))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *sizes)
        return c_MN

    return launch
