"""Triton kernels of `cumsum`: sums of tiles, the sum before each tile, scans of tiles. The vector is read twice."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

TILE_BYTES = 16 * 1024
WARPS = 8
"""Of a tile's program: 64 bytes a thread, so four 16-byte loads of a thread are in flight at once."""
SUMS_AT_ONCE = 1024


@triton.jit
def tile_sums_kernel(x_ptr, sums_ptr, n, TILE: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    tl.store(sums_ptr + tl.program_id(0), tl.sum(x, axis=0))


@triton.jit
def before_tiles_kernel(sums_ptr, tiles, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    carry = 0.0
    for first in range(0, tiles, BLOCK):
        at = first + columns
        sums = tl.load(sums_ptr + at, mask=at < tiles, other=0.0)
        upto = tl.cumsum(sums, axis=0)
        tl.store(sums_ptr + at, carry + (upto - sums), mask=at < tiles)
        carry += tl.sum(sums, axis=0)


@triton.jit
def scan_from_sums_kernel(x_ptr, sums_ptr, out_ptr, n, TILE: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * TILE + tl.arange(0, TILE)
    x = tl.load(x_ptr + at, mask=at < n, other=0.0).to(tl.float32)
    y = tl.cumsum(x, axis=0) + tl.load(sums_ptr + tl.program_id(0))
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=at < n)


def bind_three_kernels(x_N: torch.Tensor) -> Launch:
    """Sums of tiles, the sum before each tile, scans of tiles, for a contiguous vector; raises BadField if not contiguous."""
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    tile = TILE_BYTES // x_N.element_size()
    tiles = triton.cdiv(n, tile)
    sums = torch.empty(tiles, dtype=torch.float32, device=x_N.device)

    def launch() -> torch.Tensor:
        tile_sums_kernel[(tiles,)](x_N, sums, n, TILE=tile, num_warps=WARPS)
        before_tiles_kernel[(1,)](sums, tiles, BLOCK=SUMS_AT_ONCE)
        scan_from_sums_kernel[(tiles,)](x_N, sums, out_N, n, TILE=tile, num_warps=WARPS)
        return out_N

    return launch
