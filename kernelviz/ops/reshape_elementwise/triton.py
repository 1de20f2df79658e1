"""Triton kernel of `reshape_elementwise`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_divisors import divisor_of

TILE, WARPS = 128, 16
"""Of a program. On an H200 16384 × 16384 in bf16 reach 4058 GB/s (3778 with tiles of 64), 16384 × 8192 in fp32 3964."""
SMALL_TILE, SMALL_WARPS = 32, 4
SMALLEST_TILE, SMALLEST_WARPS = 16, 2
FEWEST_TILES = 128
"""A matrix with fewer large tiles is cut into small ones, so that every SM of an H200 has a tile."""


def tile_of(m: int, n: int, itemsize_bytes: int) -> tuple[int, int]:
    """Side of a tile and its warps. The smallest tiles are for fp32, where a row of one is 64 bytes: two sectors.

    >>> tile_of(4096, 4096, 2), tile_of(64, 8192, 4), tile_of(45, 37, 4), tile_of(45, 37, 2)
    ((128, 16), (32, 4), (16, 2), (32, 4))
    """
    if triton.cdiv(m, TILE) * triton.cdiv(n, TILE) >= FEWEST_TILES:
        return TILE, WARPS
    if itemsize_bytes < 4 or triton.cdiv(m, SMALL_TILE) * triton.cdiv(n, SMALL_TILE) >= FEWEST_TILES:
        return SMALL_TILE, SMALL_WARPS
    return SMALLEST_TILE, SMALLEST_WARPS


@triton.jit
def reshape_kernel(x_ptr, y_ptr, m, n, across, TILE: tl.constexpr, M_DIVISOR: tl.constexpr, N_DIVISOR: tl.constexpr):
    # The same numbers, of which the compiler now knows a divisor: loads and stores of so many elements are aligned.
    m, n = m // M_DIVISOR * M_DIVISOR, n // N_DIVISOR * N_DIVISOR
    down = tl.program_id(0) // across
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    rows = down.to(tl.int64) * TILE + tl.arange(0, TILE)
    columns = (tl.program_id(0) % across).to(tl.int64) * TILE + tl.arange(0, TILE)
    inside = (rows < m)[:, None] & (columns < n)[None, :]
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=inside, other=0.0)
    y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL).to(x.dtype)
    # Stored with neighbouring threads along m: the compiler moves the tile through shared memory.
    outside = (columns < n)[:, None] & (rows < m)[None, :]
    tl.store(y_ptr + columns[:, None] * m + rows[None, :], tl.trans(y), mask=outside)


def bind_reshape(x_MN: torch.Tensor) -> Launch:
    """One tile a program; raises BadField for a matrix that is not contiguous."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    y_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    tile, warps = tile_of(m, n, x_MN.element_size())
    across = triton.cdiv(n, tile)
    grid = (across * triton.cdiv(m, tile),)
    divisors = {"M_DIVISOR": divisor_of(m), "N_DIVISOR": divisor_of(n)}

    def launch() -> torch.Tensor:
        reshape_kernel[grid](x_MN, y_NM, m, n, across, TILE=tile, num_warps=warps, **divisors)
        return y_NM

    return launch
