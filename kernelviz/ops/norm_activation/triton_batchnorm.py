"""The Triton kernel of batch normalisation, with relu (`batchnorm_relu`) or alone (`stepwise`)."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous

BYTES_PER_THREAD = 32
"""Of a step, so that each thread has two 16-byte loads in flight."""
CHANNELS_BYTES = 512
"""Of a row for a warp: 16 bytes a thread."""
ROWS = 32
"""The most rows of a program, for all of which the factors are computed once."""


# A batch normalisation is x * factor + summand. Of a variance, only the magnitude counts, as in the reference.
@triton.jit
def factor_and_summand(mean, variance, w, b, eps):
    factor = tl.rsqrt(tl.abs(variance) + eps) * w
    return factor, b - mean * factor


@triton.jit
def batchnorm_kernel(
    x_ptr,
    mean_ptr,
    variance_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    m,
    n,
    eps,
    RELU: tl.constexpr,
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n
    mean = tl.load(mean_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    variance = tl.load(variance_ptr + columns, mask=inside, other=1.0).to(tl.float32)
    w = tl.load(w_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    factor, summand = factor_and_summand(mean, variance, w, b, eps)
    first = tl.program_id(0).to(tl.int64) * ROWS
    # STEP rows at once, so that a thread has several 16-byte loads in flight.
    for i in tl.static_range(0, ROWS, STEP):
        rows = first + i + tl.arange(0, STEP)[:, None]
        here = rows * n + columns[None, :]
        mask = (rows < m) & inside[None, :]
        y = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32) * factor[None, :] + summand[None, :]
        if RELU:
            y = tl.maximum(y, 0.0, propagate_nan=tl.PropagateNan.ALL)
        tl.store(y_ptr + here, y.to(y_ptr.dtype.element_ty), mask=mask)


def batchnorm_rows(m: int, across: int, count: int) -> int:
    """Rows of a program, `across` programs a row: fewer where the GPU's `count` SMs would have fewer than two programs each.

    >>> batchnorm_rows(16, 16, 132), batchnorm_rows(512, 16, 132), batchnorm_rows(8192, 32, 132)
    (1, 16, 32)
    """
    rows = ROWS
    while rows > 1 and triton.cdiv(m, rows) * across < 2 * count:
        rows //= 2
    return rows


def bind_batchnorm(
    x_MN: torch.Tensor,
    mean_N: torch.Tensor,
    variance_N: torch.Tensor,
    w_N: torch.Tensor,
    b_N: torch.Tensor,
    *,
    eps: float,
    relu: bool,
) -> Launch:
    """Up to ROWS rows of the same channels a program; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_MN=x_MN, mean_N=mean_N, variance_N=variance_N, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    y_MN = torch.empty_like(x_MN)
    block = min(triton.next_power_of_2(n), CHANNELS_BYTES // x_MN.element_size())
    while triton.cdiv(n, block) > LARGEST_GRID_Y:
        block *= 2
    across = triton.cdiv(n, block)
    total = batchnorm_rows(m, across, multiprocessors(x_MN.device))
    # 4 warps, 32 bytes a thread and step; with fewer rows 4 elements a thread, so that no thread issues many loads.
    step = max(1, min(total, 128 * BYTES_PER_THREAD // (block * x_MN.element_size())))
    warps = max(1, min(4, block * step // 128))
    grid = (triton.cdiv(m, total), across)

    def launch() -> torch.Tensor:
        batchnorm_kernel[grid](
            x_MN,
            mean_N,
            variance_N,
            w_N,
            b_N,
            y_MN,
            m,
            n,
            eps,
            RELU=relu,
            ROWS=total,
            STEP=step,
            BLOCK=block,
            num_warps=warps,
        )
        return y_MN

    return launch
