"""Triton kernels of `row_sum` and `argmax`: one program per row, which it reads in blocks."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

LONGEST_BLOCK_BYTES = 16 * 1024
"""64 bytes a thread of 8 warps, so that each thread has four 16-byte loads in flight."""


@triton.jit
def row_sum_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    # One sum for each column of the block, so that threads synchronise only once, after the loop.
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, n, BLOCK):
        sums += tl.load(x_ptr + start + first + columns, mask=first + columns < n, other=0.0).to(tl.float32)
    tl.store(out_ptr + tl.program_id(0), tl.sum(sums, axis=0).to(out_ptr.dtype.element_ty))


@triton.jit
def argmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    # Integers in the order of the floats, NaN above all, so that their maximum needs no special case for NaN.
    best = tl.full((BLOCK,), -2147483648, tl.int32)
    indices = tl.zeros((BLOCK,), tl.int32)
    for first in range(0, n, BLOCK):
        at = first + columns
        # Adding 0 makes -0 the same as 0, which it equals.
        x = tl.load(x_ptr + start + at, mask=at < n, other=-float("inf")).to(tl.float32) + 0.0
        bits = x.to(tl.int32, bitcast=True)
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        key = tl.where(x != x, 0x7FFFFFFF, key)
        key = tl.where(at < n, key, -2147483648)
        indices = tl.where(key > best, at, indices)
        best = tl.maximum(best, key)
    top = tl.max(best, axis=0)
    # The first of equal elements.
    index = tl.min(tl.where(best == top, indices, 2147483647), axis=0)
    tl.store(out_ptr + tl.program_id(0), index.to(tl.int64))


def bind_row_sum(x_MN: torch.Tensor) -> Launch:
    """One program a row of a contiguous matrix (M, N); raises BadField if not contiguous."""
    return _bind(row_sum_kernel, x_MN, x_MN.dtype)


def bind_argmax(x_MN: torch.Tensor) -> Launch:
    """One program a row of a contiguous matrix (M, N); raises BadField if not contiguous."""
    return _bind(argmax_kernel, x_MN, torch.int64)


def _bind(kernel: triton.JITFunction, x_MN: torch.Tensor, dtype: torch.dtype) -> Launch:
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    out_M = torch.empty(m, dtype=dtype, device=x_MN.device)
    block = min(triton.next_power_of_2(n), LONGEST_BLOCK_BYTES // x_MN.element_size())
    warps = max(1, min(8, block * x_MN.element_size() // 2048))

    def launch() -> torch.Tensor:
        kernel[(m,)](x_MN, out_M, n, BLOCK=block, num_warps=warps)
        return out_M

    return launch
