"""Triton kernels of the backward pass of a linear layer with an activation, before its products: dz = dy f'(z), and db = Σ dz."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.matmul.linear_parts import part_rows

ROWS_AT_ONCE, COLUMNS, WARPS = 16, 128, 4
"""Of one program: the most rows that it loads at once (8 rows are 16 bytes a thread in 16-bit formats), and columns."""


@triton.jit
def linear_derivative_kernel(
    z_ptr,
    dy_ptr,
    dz_ptr,
    sums_ptr,
    m,
    n,
    FUNCTION: tl.constexpr,
    ROWS: tl.constexpr,
    AT_ONCE: tl.constexpr,
    COLUMNS: tl.constexpr,
):
    part = tl.program_id(0)
    columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((COLUMNS,), tl.float32)
    for first in range(0, ROWS, AT_ONCE):
        rows = part * ROWS + first + tl.arange(0, AT_ONCE)
        # 64-bit offsets: M * N reaches 2^31 and more on a GPU with 140 GB.
        offsets = rows.to(tl.int64)[:, None] * n + columns[None, :]
        mask = (rows < m)[:, None] & (columns < n)[None, :]
        z = tl.load(z_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
        if FUNCTION == "relu":
            dz = tl.where(z > 0.0, dy, 0.0)
        elif FUNCTION == "silu":
            s = tl.sigmoid(z)
            dz = dy * s * (1.0 + z * (1.0 - s))
        else:
            density = 0.3989422804014327 * tl.exp(-0.5 * z * z)
            dz = dy * (0.5 + 0.5 * tl.erf(z * 0.70710678118654752) + z * density)
        tl.store(dz_ptr + offsets, dz.to(dz_ptr.dtype.element_ty), mask=mask)
        total += tl.sum(dz, axis=0)
    tl.store(sums_ptr + part.to(tl.int64) * n + columns, total, mask=columns < n)


@triton.jit
def linear_bias_kernel(sums_ptr, db_ptr, parts, n, AT_ONCE: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    total = tl.zeros((AT_ONCE, COLUMNS), tl.float32)
    for first in range(0, parts, AT_ONCE):
        rows = first + tl.arange(0, AT_ONCE)
        mask = (rows < parts)[:, None] & (columns < n)[None, :]
        total += tl.load(sums_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :], mask=mask, other=0.0)
    tl.store(db_ptr + columns, tl.sum(total, axis=0).to(db_ptr.dtype.element_ty), mask=columns < n)


def bind_derivative(z_MN: torch.Tensor, dy_MN: torch.Tensor, *, function: str) -> tuple[torch.Tensor, Launch]:
    """Memory for dz of contiguous z and dy, and a launch that writes it there and returns db.

    Sums of 8 to 64 rows are added up in fp32 in an order that is always the same on a card.
    """
    m, n = z_MN.shape
    of_part = part_rows(m, n, COLUMNS, limits(z_MN.device)[0])
    parts = -(-m // of_part)
    dz_MN = torch.empty_like(z_MN)
    db_N = torch.empty(n, dtype=z_MN.dtype, device=z_MN.device)
    sums_PN = torch.empty((parts, n), dtype=torch.float32, device=z_MN.device)

    def launch() -> torch.Tensor:
        linear_derivative_kernel[(parts, -(-n // COLUMNS))](
            z_MN,
            dy_MN,
            dz_MN,
            sums_PN,
            m,
            n,
            FUNCTION=function,
            ROWS=of_part,
            AT_ONCE=min(of_part, ROWS_AT_ONCE),
            COLUMNS=COLUMNS,
            num_warps=WARPS,
        )
        linear_bias_kernel[(-(-n // 32),)](sums_PN, db_N, parts, n, AT_ONCE=32, COLUMNS=32, num_warps=WARPS)
        return db_N

    return dz_MN, launch
