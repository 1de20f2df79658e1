"""Triton kernel of `row_sum` as a guide to GPU operations publishes it (source 3): all blocks of columns write the same sums."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous

BLOCK_M, BLOCK_N = 32, 128
"""Rows and columns of a block. The source does not say them."""
MOST_ELEMENTS = 2**31 - 1
"""The kernel multiplies row numbers by row lengths in 32 bits, and would access other memory beyond that."""


@triton.jit
def published_kernel(x_ptr, out_ptr, m, n, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=mask, other=0.0)
    # As published: a store, not an atomic addition. The sum of the block that stores last remains.
    tl.store(out_ptr + rows, tl.sum(x, axis=1), mask=rows < m)


def bind_published(x_MN: torch.Tensor) -> Launch:
    """Launch of `published_kernel` over a contiguous matrix (M, N): a program for each block of 32 rows and 128 columns.

    Raises BadField for a matrix that is not contiguous, for more elements than 32 bits count, and for more columns than a grid
    has blocks for.
    """
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if m * n > MOST_ELEMENTS:
        raise BadField("size m", m, f"this kernel counts elements in 32 bits, and {m} × {n} are more")
    grid = (triton.cdiv(m, BLOCK_M), triton.cdiv(n, BLOCK_N))
    if grid[1] > LARGEST_GRID_Y:
        raise BadField("size n", n, f"this kernel takes at most {LARGEST_GRID_Y * BLOCK_N} columns")
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)

    def launch() -> torch.Tensor:
        published_kernel[grid](x_MN, out_M, m, n, BLOCK_M=BLOCK_M, BLOCK_N=BLOCK_N)
        return out_M

    return launch
