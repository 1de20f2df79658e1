"""CUDA C++ kernels that were published as examples (published.cu), bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "published.cu"
SIDE = 16
"""Rows and columns of a block of threads. The source does not say it."""
MOST_ELEMENTS = 2**31 - 1
"""Of one matrix: the kernels index in 32 bits, and would access other memory beyond that."""


def bind_published(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """The product of contiguous fp32 matrices. Raises BadField for others, and for sizes that its indices cannot count."""
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    require_countable(m, n, k)
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    kernel = nvrtc.kernel(SOURCE, "matmul_published", {})
    pointers = (a_MK.data_ptr(), b_KN.data_ptr(), c_MN.data_ptr())
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        nvrtc.launch(kernel, (-(-n // SIDE), -(-m // SIDE)), (SIDE, SIDE), *pointers, *sizes)
        return c_MN

    return launch


def bind_published_linear(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Staged:
    """max(x wᵀ + b, 0) of contiguous fp32 tensors. wᵀ, which the published kernel takes, is made in the untimed pass.

    Errors: as `bind_published`.
    """
    import torch

    require_contiguous(x_MK=x_MK, w_NK=w_NK, b_N=b_N)
    (m, k), n = x_MK.shape, w_NK.shape[0]
    require_countable(m, n, k)
    w_KN = torch.empty((k, n), dtype=w_NK.dtype, device=w_NK.device)
    y_MN = torch.empty((m, n), dtype=x_MK.dtype, device=x_MK.device)
    kernel = nvrtc.kernel(SOURCE, "linear_relu_published", {})
    pointers = tuple(t.data_ptr() for t in (x_MK, w_KN, b_N, y_MN))
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        nvrtc.launch(kernel, (-(-n // SIDE), -(-m // SIDE)), (SIDE, SIDE), *pointers, *sizes)
        return y_MN

    return Staged(lambda: w_KN.copy_(w_NK.t()), launch)


def require_countable(m: int, n: int, k: int) -> None:
    """Raises BadField for sizes for which the indices of the kernels or the grid are too small."""
    if m > LARGEST_GRID_Y * SIDE:
        raise BadField("size m", m, f"this kernel takes at most {LARGEST_GRID_Y * SIDE} rows")
    for axis, size, rows, columns in (("m", m, m, k), ("k", k, k, n), ("n", n, m, n)):
        if rows * columns > MOST_ELEMENTS:
            raise BadField(
                f"size {axis}", size, f"this kernel indexes in 32 bits, which do not count {rows} × {columns} elements"
            )
