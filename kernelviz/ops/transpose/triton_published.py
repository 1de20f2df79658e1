"""Triton kernel of `transpose` as a guide to GPU operations publishes it (source 3): it leaves out the last columns."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

BLOCK = 32
"""Rows and columns of a tile. The source does not say it."""
MOST_ELEMENTS = 2**31 - 1
"""The kernel multiplies row numbers by row lengths in 32 bits, and would access other memory beyond that."""


@triton.jit
def published_kernel(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    # As published: whole tiles are counted, so the columns after the last whole tile belong to no program.
    row_start = (tl.program_id(0) // (n // BLOCK)) * BLOCK
    column_start = (tl.program_id(0) % (n // BLOCK)) * BLOCK
    rows = row_start + tl.arange(0, BLOCK)
    columns = column_start + tl.arange(0, BLOCK)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=mask)
    tl.store(out_ptr + columns[:, None] * m + rows[None, :], tl.trans(x), mask=tl.trans(mask))


def bind_published(x_MN: torch.Tensor) -> Launch:
    """Launch of `published_kernel` over a contiguous matrix (M, N): a program for each tile of 32 × 32 that it can number.

    The source does not say the grid. More programs would write nothing else: the kernel numbers n // 32 tiles in a row of
    tiles, and those after the last row are masked.
    Raises BadField for a matrix that is not contiguous, for fewer columns than a tile has (the kernel divides by n // 32), and
    for more elements than 32 bits count.
    """
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if n < BLOCK:
        raise BadField("size n", n, f"this kernel divides by the number of whole tiles of {BLOCK} columns, which is 0")
    if m * n > MOST_ELEMENTS:
        raise BadField("size m", m, f"this kernel counts elements in 32 bits, and {m} × {n} are more")
    out_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    grid = (triton.cdiv(m, BLOCK) * (n // BLOCK),)

    def launch() -> torch.Tensor:
        published_kernel[grid](x_MN, out_NM, m, n, BLOCK=BLOCK)
        return out_NM

    return launch
