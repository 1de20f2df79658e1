"""The Triton kernel of batch normalisation alone, which `stepwise` follows by a kernel of its own for relu."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.norm_activation.triton import BYTES_PER_THREAD, CHANNELS_BYTES, MOST_ACROSS, batchnorm_rows


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
    ROWS: tl.constexpr,
    STEP: tl.constexpr,
    BLOCK: tl.constexpr,
):
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = columns < n
    factor = tl.rsqrt(tl.abs(tl.load(variance_ptr + columns, mask=inside, other=1.0).to(tl.float32)) + eps)
    factor *= tl.load(w_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    mean = tl.load(mean_ptr + columns, mask=inside, other=0.0).to(tl.float32)
    summand = tl.load(b_ptr + columns, mask=inside, other=0.0).to(tl.float32) - mean * factor
    first = tl.program_id(0).to(tl.int64) * ROWS
    for i in tl.static_range(0, ROWS, STEP):
        rows = first + i + tl.arange(0, STEP)[:, None]
        here = rows * n + columns[None, :]
        mask = (rows < m) & inside[None, :]
        x = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32)
        y = x * factor[None, :] + summand[None, :]
        tl.store(y_ptr + here, y.to(y_ptr.dtype.element_ty), mask=mask)


def bind_batchnorm(
    x_MN: torch.Tensor,
    mean_N: torch.Tensor,
    variance_N: torch.Tensor,
    w_N: torch.Tensor,
    b_N: torch.Tensor,
    *,
    eps: float,
) -> Launch:
    """The kernel of the fused form without its relu; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_MN=x_MN, mean_N=mean_N, variance_N=variance_N, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    z_MN = torch.empty_like(x_MN)
    block = min(triton.next_power_of_2(n), CHANNELS_BYTES // x_MN.element_size())
    while triton.cdiv(n, block) > MOST_ACROSS:
        block *= 2
    across = triton.cdiv(n, block)
    total = batchnorm_rows(m, across, multiprocessors(x_MN.device))
    step = max(1, min(total, 128 * BYTES_PER_THREAD // (block * x_MN.element_size())))
    warps = max(1, min(4, block * step // 128))
    grid = (triton.cdiv(m, total), across)

    def launch() -> torch.Tensor:
        batchnorm_kernel[grid](
            x_MN, mean_N, variance_N, w_N, b_N, z_MN, m, n, eps, ROWS=total, STEP=step, BLOCK=block, num_warps=warps
        )
        return z_MN

    return launch
