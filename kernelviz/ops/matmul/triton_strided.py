"""Triton kernel of matrix products whose operands may be views with any strides: row-major, column-major, or neither."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.matmul.triton import GROUP, limits, tile_for
from kernelviz.ops.matmul.triton_persistent import _tile_position


@triton.jit
def strided_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    a_row,
    a_column,
    b_row,
    b_column,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    # A stride of 1 is a constant of the compilation: from it Triton knows along which axis an operand is contiguous.
    tile_m, tile_n = _tile_position(tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN), GROUP)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    # 64-bit where a number is multiplied by a stride: M * K, K * N and M * N pass 2^31.
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * a_row + depth.to(tl.int64)[None, :] * a_column
    b_ptrs = b_ptr + depth.to(tl.int64)[:, None] * b_row + columns.to(tl.int64)[None, :] * b_column
    a_step = tl.full((), BK, tl.int64) * a_column
    b_step = tl.full((), BK, tl.int64) * b_row
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        # Constants of the compilation where a size is a multiple of its tile: then no mask is left.
        left = EVEN_K | (start + depth < k)
        a = tl.load(a_ptrs, mask=(EVEN_M | (rows < m))[:, None] & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (EVEN_N | (columns < n))[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += a_step
        b_ptrs += b_step
    c_ptrs = c_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def bind_strided(a_MK: torch.Tensor, b_KN: torch.Tensor, *, compute: str | None) -> Launch:
    """Launch of `strided_kernel` over matrices (M, K) and (K, N) that may be views. `compute`: ``tf32``, ``ieee`` or None."""
    (m, k), n = a_MK.shape, b_KN.shape[1]
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    precision = compute or "ieee"
    tile = tile_for(m, n, a_MK.element_size(), precision, *limits(a_MK.device))
    grid = (tile.grid(m, n),)
    even = {"EVEN_M": m % tile.bm == 0, "EVEN_N": n % tile.bn == 0, "EVEN_K": k % tile.bk == 0}

    def launch() -> torch.Tensor:
        strided_kernel[grid](
            a_MK,
            b_KN,
            c_MN,
            m,
            n,
            k,
            *a_MK.stride(),
            *b_KN.stride(),
            BM=tile.bm,
            BN=tile.bn,
            BK=tile.bk,
            GROUP=GROUP,
            PRECISION=precision,
            num_warps=tile.warps,
            num_stages=tile.stages,
            **even,
        )
        return c_MN

    return launch
