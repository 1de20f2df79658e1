"""Triton kernel of `conv2d` and `conv_bias_relu`: a matrix product whose rows are windows, which are never in memory."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.convolution.geometry import geometry_of, require_pixels
from kernelviz.ops.convolution.tiles import Tile, choose
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.kernels.triton_divisors import divisor_of


@triton.jit
def implicit_kernel(
    x_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    pixels,
    h,
    w,
    c,
    k,
    p,
    q,
    R: tl.constexpr,
    S: tl.constexpr,
    C_DIVISOR: tl.constexpr,
    K_DIVISOR: tl.constexpr,
    DEPTHS: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    BIAS_RELU: tl.constexpr,
):
    # The same numbers, of which the compiler now knows a divisor: loads and stores of so many elements are aligned.
    c = c // C_DIVISOR * C_DIVISOR
    k = k // K_DIVISOR * K_DIVISOR
    # Neighbouring programs take all filters of the same pixels, so that these are in L2.
    program = tl.program_id(0)
    tiles_n = tl.cdiv(k, BN)
    rows = program // tiles_n * BM + tl.arange(0, BM)
    columns = program % tiles_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    top = rows // q % p * S - R // 2
    left = rows % q * S - R // 2
    # 64-bit where numbers of pixels are multiplied by channels: N * H * W * C and N * P * Q * K pass 2^31.
    corner = (rows // (p * q)).to(tl.int64) * h * w + top * w + left
    x_rows = x_ptr + (corner * c)[:, None] + depth[None, :]
    w_columns = w_ptr + (columns.to(tl.int64) * (R * R * c))[None, :] + depth[:, None]
    inside = EVEN_M | (rows < pixels)
    acc = tl.zeros((BM, BN), tl.float32)
    # One loop over the taps of the filter and, of each, DEPTHS steps of channels, a constant, so that nothing is divided by it.
    for step in range(0, R * R * DEPTHS):
        tap = step // DEPTHS
        channel = step % DEPTHS * BK
        i = tap // R
        j = tap % R
        seen = inside if R == 1 else inside & (top + i >= 0) & (top + i < h) & (left + j >= 0) & (left + j < w)
        rest = EVEN_K | (channel + depth < c)
        x = tl.load(x_rows + ((i * w + j) * c + channel), mask=seen[:, None] & rest[None, :], other=0.0)
        filters = tl.load(
            w_columns + (tap * c + channel), mask=rest[:, None] & (EVEN_N | (columns < k))[None, :], other=0.0
        )
        acc = tl.dot(x, filters, acc)
    if BIAS_RELU:
        bias = tl.load(b_ptr + columns, mask=EVEN_N | (columns < k), other=0.0).to(tl.float32)
        acc = tl.maximum(acc + bias[None, :], 0.0, propagate_nan=tl.PropagateNan.ALL)
    y_ptrs = y_ptr + rows.to(tl.int64)[:, None] * k + columns[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=(rows < pixels)[:, None] & (columns < k)[None, :])


def bind_implicit(
    x_NHWC: torch.Tensor, w_KRRC: torch.Tensor, b_K: torch.Tensor | None, s: int, tile: Tile | None
) -> Launch:
    """Launch of `implicit_kernel`: x ∗ w, or with a bias max(x ∗ w + b, 0). `tile`: None is the choice by size.

    Raises BadField for tensors that are not contiguous, and for 2^31 pixels of the result or more.
    """
    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, **({} if b_K is None else {"b_K": b_K}))
    g = geometry_of(x_NHWC, w_KRRC, s)
    require_pixels(g)
    # Triton's interpreter has no GPU: the tile is an H200's there.
    chosen = tile or choose(g.pixels, g.k, g.c, g.terms, *limits(x_NHWC.device, without_gpu=MOST_SHARED_BYTES))
    y_NPQK = torch.empty((g.n, g.p, g.q, g.k), dtype=x_NHWC.dtype, device=x_NHWC.device)
    grid = (-(-g.pixels // chosen.bm) * -(-g.k // chosen.bn),)
    even = {"EVEN_M": g.pixels % chosen.bm == 0, "EVEN_N": g.k % chosen.bn == 0, "EVEN_K": g.c % chosen.bk == 0}

    def launch() -> torch.Tensor:
        implicit_kernel[grid](
            x_NHWC,
            w_KRRC,
            b_K,
            y_NPQK,
            g.pixels,
            g.h,
            g.w,
            g.c,
            g.k,
            g.p,
            g.q,
            R=g.r,
            S=g.s,
            C_DIVISOR=divisor_of(g.c),
            K_DIVISOR=divisor_of(g.k),
            DEPTHS=-(-g.c // chosen.bk),
            BM=chosen.bm,
            BN=chosen.bn,
            BK=chosen.bk,
            BIAS_RELU=b_K is not None,
            num_warps=chosen.warps,
            num_stages=chosen.stages,
            **even,
        )
        return y_NPQK

    return launch
