"""Triton kernel of a linear layer with its activation: tiles in groups, fp32 accumulation, bias and function before the store."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_gelu import gelu
from kernelviz.ops.matmul.triton import GROUP, limits, tile_for


@triton.jit
def linear_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
    FUNCTION: tl.constexpr,
):
    # As grouped_kernel of matmul, but w is stored by output features: K is contiguous in both factors.
    program = tl.program_id(0)
    across = tl.cdiv(n, BN)
    group = program // (GROUP * across)
    rows_in_group = min(tl.cdiv(m, BM) - group * GROUP, GROUP)
    tile_m = group * GROUP + (program % (GROUP * across)) % rows_in_group
    tile_n = (program % (GROUP * across)) // rows_in_group

    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    # 64-bit where a row number is multiplied by a row length: M * K, K * N and M * N pass 2^31.
    x_ptrs = x_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :]
    w_ptrs = w_ptr + columns.to(tl.int64)[None, :] * k + depth[:, None]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        left = EVEN_K | (start + depth < k)
        x = tl.load(x_ptrs, mask=(EVEN_M | (rows < m))[:, None] & left[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=left[:, None] & (EVEN_N | (columns < n))[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision=PRECISION)
        x_ptrs += BK
        w_ptrs += BK
    bias = tl.load(b_ptr + columns, mask=EVEN_N | (columns < n), other=0.0).to(tl.float32)
    z = acc + bias[None, :]
    if FUNCTION == "relu":
        y = tl.maximum(z, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif FUNCTION == "silu":
        y = z * tl.sigmoid(z)
    else:
        y = gelu(z, y_ptr.dtype.element_ty.primitive_bitwidth == 16)
    y_ptrs = y_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(y_ptrs, y.to(y_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def bind_linear(
    x_MK: torch.Tensor, w_NK: torch.Tensor, b_N: torch.Tensor, *, function: str, compute: str | None
) -> Launch:
    """f(x wᵀ + b) of contiguous matrices (M, K) and (N, K) and a vector (N,). `compute`: ``tf32``, ``ieee`` or None.

    Raises BadField for tensors that are not contiguous.
    """
    require_contiguous(x_MK=x_MK, w_NK=w_NK, b_N=b_N)
    (m, k), n = x_MK.shape, w_NK.shape[0]
    y_MN = torch.empty((m, n), dtype=x_MK.dtype, device=x_MK.device)
    precision = compute or "ieee"
    tile = tile_for(m, n, x_MK.element_size(), precision, *limits(x_MK.device))
    grid = (tile.grid(m, n),)
    even = {"EVEN_M": m % tile.bm == 0, "EVEN_N": n % tile.bn == 0, "EVEN_K": k % tile.bk == 0}

    def launch() -> torch.Tensor:
        linear_kernel[grid](
            x_MK,
            w_NK,
            b_N,
            y_MN,
            m,
            n,
            k,
            BM=tile.bm,
            BN=tile.bn,
            BK=tile.bk,
            GROUP=GROUP,
            PRECISION=precision,
            FUNCTION=function,
            num_warps=tile.warps,
            num_stages=tile.stages,
            **even,
        )
        return y_MN

    return launch
