"""Triton kernel of `rmsnorm`, `layernorm` and `add_rmsnorm`, compiled for one size of the matrix.

One source for the three: `r_ptr` and `s_ptr` are None except in add_rmsnorm, `b_ptr` is None except in layernorm, whose rows are
CENTRED.
"""

from __future__ import annotations

from math import gcd

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.known_rows import tile_of
from kernelviz.ops.kernels.triton_known_rows import is_element, rows_of_tile
from kernelviz.ops.kernels.vec16 import VEC16_BYTES
from kernelviz.ops.normalisation.triton import NormInputs, bind_block_per_row


@triton.jit
def known_size_kernel(
    x_ptr,
    r_ptr,
    w_ptr,
    b_ptr,
    s_ptr,
    y_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    EPS: tl.constexpr,
    CENTRED: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
    WIDE: tl.constexpr,
):
    # WIDTH, the neighbours that a row allows to load at once, is stated for the weight, too: if threads had other elements of it
    # than of x, these would pass through shared memory, behind a barrier.
    rows, columns = rows_of_tile(ROWS, WIDE), tl.max_contiguous(tl.arange(0, BLOCK), WIDTH)
    at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
    # All loads begin before the first result is needed, because a program has no other work to hide their latency.
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    r = x
    if r_ptr is not None:
        r = tl.load(r_ptr + at, mask=inside, other=0.0).to(tl.float32)
    # Every program reads the weight, and so does the next call: with evict_last, L2 evicts other lines first.
    of_row = columns[None, :]
    w = tl.load(w_ptr + of_row, mask=of_row < N, other=0.0, eviction_policy="evict_last").to(tl.float32)
    b = w
    if b_ptr is not None:
        b = tl.load(b_ptr + of_row, mask=of_row < N, other=0.0, eviction_policy="evict_last").to(tl.float32)
    if r_ptr is not None:
        # The sum as it is stored, so that s is the row that is normalised.
        s = (x + r).to(s_ptr.dtype.element_ty)
        tl.store(s_ptr + at, s, mask=inside)
        x = s.to(tl.float32)
    if CENTRED:
        # Two passes over registers, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
        x -= tl.sum(x, axis=1, keep_dims=True) * (1.0 / N)
        if N != BLOCK:
            x = tl.where(of_row < N, x, 0.0)
    y = x * tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) * (1.0 / N) + EPS) * w
    if b_ptr is not None:
        y += b
    tl.store(y_ptr + at, y.to(y_ptr.dtype.element_ty), mask=inside)


def bind_known_size(inputs: NormInputs, *, eps: float) -> Launch:
    """A tile of rows a program; longer rows as `bind_block_per_row`. Raises BadField for tensors that are not contiguous."""
    x_MN = inputs.x_MN
    tile, (m, n) = tile_of(x_MN), x_MN.shape
    if tile is None:
        return bind_block_per_row(inputs, eps=eps)
    s_MN, y_MN = inputs.outputs()
    pointers = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    outputs = y_MN if s_MN is None else (s_MN, y_MN)
    centred, width = inputs.b_N is not None, gcd(VEC16_BYTES // x_MN.element_size(), n)

    def launch() -> torch.Tensor | tuple[torch.Tensor, ...]:
        known_size_kernel[(tile.programs,)](
            *pointers,
            M=m,
            N=n,
            EPS=eps,
            CENTRED=centred,
            ROWS=tile.rows,
            BLOCK=tile.block,
            WIDTH=width,
            WIDE=tile.wide,
            num_warps=tile.warps,
        )
        return outputs

    return launch
