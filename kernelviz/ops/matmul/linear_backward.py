"""CUDA C++ kernels of the backward pass of a linear layer, before its products (linear_backward.cu), bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.matmul.linear_parts import part_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "linear_backward.cu"
THREADS, COLUMNS, BIAS_COLUMNS, EACH = 256, 256, 32, 8
"""Threads of a block, its columns in either kernel, and columns of a thread."""


def defines(function: str, element: str, rows: int) -> dict[str, str]:
    """The definitions of linear_backward.cu for elements of this C++ type. `rows`: of a block."""
    return {"FUNCTION": function.upper(), "ELEMENT": element, "PART_ROWS": str(rows)}


def bind_derivative(z_MN: Tensor, dy_MN: Tensor, *, function: str) -> tuple[Tensor, Launch]:
    """Memory for dz of contiguous z and dy of 16-bit floats, and a launch that writes it there and returns db.

    Raises BadField where rows are no multiples of 8 elements.
    """
    import torch

    m, n = z_MN.shape
    if n % EACH:
        raise BadField(
            "size n", n, f"this kernel accesses 16 bytes at a time, so it needs a multiple of {EACH} elements"
        )
    rows = part_rows(m, n, COLUMNS, limits(z_MN.device)[0])
    parts = -(-m // rows)
    dz_MN = torch.empty_like(z_MN)
    db_N = torch.empty(n, dtype=z_MN.dtype, device=z_MN.device)
    sums_PN = torch.empty((parts, n), dtype=torch.float32, device=z_MN.device)
    macros = defines(function, nvrtc.element_type(z_MN.dtype), rows)
    derivative = nvrtc.kernel(SOURCE, "linear_derivative", macros)
    bias = nvrtc.kernel(SOURCE, "linear_bias", macros)

    def launch() -> Tensor:
        pointers = (t.data_ptr() for t in (z_MN, dy_MN, dz_MN, sums_PN))
        blocks = (parts, -(-n // COLUMNS))
        nvrtc.launch(derivative, blocks, THREADS, *pointers, ctypes.c_longlong(m), ctypes.c_int(n))
        sums = (sums_PN.data_ptr(), db_N.data_ptr())
        nvrtc.launch(bias, -(-n // BIAS_COLUMNS), THREADS, *sums, ctypes.c_longlong(parts), ctypes.c_int(n))
        return db_N

    return dz_MN, launch
