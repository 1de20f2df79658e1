"""CUDA C++ kernels of `matmul`, bound to tensors."""

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

SOURCE = Path(__file__).parent / "cuda.cu"
COLUMNS = 32


def bind_naive(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """One thread an element of the product. Raises BadField for more columns than a grid has."""
    return _bind("matmul_naive", a_MK, b_KN, rows=8)


def bind_tiled(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """Tiles of 32×32 through shared memory. Raises BadField for more columns than a grid has."""
    return _bind("matmul_tiled", a_MK, b_KN, rows=32)


def _bind(name: str, a_MK: Tensor, b_KN: Tensor, *, rows: int) -> Launch:
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    blocks = (-(-m // rows), -(-n // COLUMNS))
    if blocks[1] > LARGEST_GRID_Y:
        raise BadField("size n", n, f"this kernel takes at most {LARGEST_GRID_Y * COLUMNS} columns")
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(a_MK.dtype)})
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_longlong(k))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, (COLUMNS, rows), *pointers, *sizes)
        return c_MN

    return launch
