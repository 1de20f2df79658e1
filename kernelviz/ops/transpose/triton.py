"""Triton kernel of `transpose`. Loads and stores have the same type, so that no bits are changed, not even those of a NaN."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_divisors import divisor_of


@triton.jit
def tile_kernel(
    x_ptr,
    out_ptr,
    m,
    n,
    tiles_n,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    M_DIVISOR: tl.constexpr,
    N_DIVISOR: tl.constexpr,
):
    # The same numbers, of which the compiler now knows a divisor: loads and stores of so many elements are aligned.
    m, n = m // M_DIVISOR * M_DIVISOR, n // N_DIVISOR * N_DIVISOR
    # One axis of programs, because a grid has at most 65535 along y. 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    rows = (tl.program_id(0) // tiles_n).to(tl.int64) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = (tl.program_id(0) % tiles_n).to(tl.int64) * BLOCK_N + tl.arange(0, BLOCK_N)
    x = tl.load(x_ptr + rows[:, None] * n + columns[None, :], mask=(rows < m)[:, None] & (columns < n)[None, :])
    at = columns[:, None] * m + rows[None, :]
    tl.store(out_ptr + at, tl.trans(x), mask=(columns < n)[:, None] & (rows < m)[None, :])


BLOCK = 64
WARPS = 8
SHORTEST_SEGMENT_BYTES = 64
"""Shortest row of a small tile: two sectors."""


def tile_of(m: int, n: int, itemsize_bytes: int, count: int) -> tuple[int, int]:
    """Rows and columns of a tile: 64 × 64, smaller where the GPU's `count` SMs would have fewer than two tiles each, or as many
    elements in another shape where the matrix is narrower than 64.

    >>> tile_of(4096, 4096, 4, 132), tile_of(256, 256, 4, 132), tile_of(256, 256, 2, 132)
    ((64, 64), (16, 16), (32, 32))
    >>> tile_of(4096, 10, 4, 132), tile_of(10, 4096, 4, 132)
    ((256, 16), (16, 256))
    """
    if min(m, n) >= BLOCK:
        side = BLOCK
        while (
            side * itemsize_bytes > SHORTEST_SEGMENT_BYTES and triton.cdiv(m, side) * triton.cdiv(n, side) < 2 * count
        ):
            side //= 2
        return side, side
    if n < BLOCK:
        across = max(4, int(triton.next_power_of_2(n)))
        return BLOCK * BLOCK // across, across
    down = min(BLOCK, max(4, int(triton.next_power_of_2(m))))
    return down, BLOCK * BLOCK // down


def bind_tile(x_MN: torch.Tensor) -> Launch:
    """One tile of up to 4096 elements per program; raises BadField for a matrix that is not contiguous."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    out_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    down, across = tile_of(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    # Four elements a thread of a small tile.
    warps = min(WARPS, down * across // 128)
    tiles_n = triton.cdiv(n, across)
    divisors = {"M_DIVISOR": divisor_of(m), "N_DIVISOR": divisor_of(n)}
    grid = (triton.cdiv(m, down) * tiles_n,)

    def launch() -> torch.Tensor:
        tile_kernel[grid](
            x_MN,
            out_NM,
            m,
            n,
            tiles_n,
            BLOCK_M=down,
            BLOCK_N=across,
            num_warps=warps,
            **divisors,
        )
        return out_NM

    return launch
