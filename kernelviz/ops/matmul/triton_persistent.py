"""Triton kernels of `matmul` that load through pointers, with every number of the tile left open."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.matmul.triton import Tile, grouped_kernel, limits


@triton.jit
def _tile_position(tile, tiles_m, tiles_n, GROUP: tl.constexpr):
    """Row and column of a tile: GROUP rows of tiles are traversed column by column, so that both factors are in L2."""
    group = tile // (GROUP * tiles_n)
    rows_in_group = min(tiles_m - group * GROUP, GROUP)
    within = tile % (GROUP * tiles_n)
    return group * GROUP + within % rows_in_group, within // rows_in_group


@triton.jit
def persistent_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr,
    FLATTEN: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    depth = tl.arange(0, BK)
    # FLATTEN makes one loop of the two, so that the first tiles of A and B are loaded while the product before is stored.
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=FLATTEN):
        tile_m, tile_n = _tile_position(tile, tiles_m, tiles_n, GROUP)
        rows = tile_m * BM + tl.arange(0, BM)
        columns = tile_n * BN + tl.arange(0, BN)
        # 64-bit where a row number is multiplied by a row length: M * K, K * N and M * N pass 2^31.
        a_rows = a_ptr + rows.to(tl.int64)[:, None] * k
        b_columns = b_ptr + columns[None, :]
        acc = tl.zeros((BM, BN), tl.float32)
        for start in range(0, k, BK):
            left = EVEN_K | (start + depth < k)
            a_ptrs = a_rows + (start + depth)[None, :]
            b_ptrs = b_columns + (start + depth).to(tl.int64)[:, None] * n
            a = tl.load(a_ptrs, mask=(EVEN_M | (rows < m))[:, None] & left[None, :], other=0.0)
            b = tl.load(b_ptrs, mask=left[:, None] & (EVEN_N | (columns < n))[None, :], other=0.0)
            acc = tl.dot(a, b, acc, input_precision=PRECISION)
        c_ptrs = c_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def bind_tuned(
    a_MK: torch.Tensor,
    b_KN: torch.Tensor,
    *,
    compute: str | None,
    tile_m: int,
    tile_n: int,
    tile_k_bytes: int,
    warps: int,
    stages: int,
    group: int,
) -> Launch:
    """Launch of `grouped_kernel` with these numbers. Raises BadField for matrices that are not contiguous."""
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    tile = Tile(bm=tile_m, bn=tile_n, bk=tile_k_bytes // a_MK.element_size(), warps=warps, stages=stages)
    grid = (tile.grid(m, n),)

    def launch() -> torch.Tensor:
        grouped_kernel[grid](
            a_MK,
            b_KN,
            c_MN,
            m,
            n,
            k,
            BM=tile.bm,
            BN=tile.bn,
            BK=tile.bk,
            GROUP=group,
            EVEN_M=m % tile.bm == 0,
            EVEN_N=n % tile.bn == 0,
            EVEN_K=k % tile.bk == 0,
            PRECISION=compute or "ieee",
            num_warps=warps,
            num_stages=stages,
        )
        return c_MN

    return launch


def bind_persistent(
    a_MK: torch.Tensor,
    b_KN: torch.Tensor,
    *,
    compute: str | None,
    tile_m: int,
    tile_n: int,
    tile_k_bytes: int,
    warps: int,
    stages: int,
    group: int,
    flatten: int,
) -> Launch:
    """Launch of `persistent_kernel`, one program for each SM. Raises BadField for matrices that are not contiguous."""
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    tile = Tile(bm=tile_m, bn=tile_n, bk=tile_k_bytes // a_MK.element_size(), warps=warps, stages=stages)
    programs, _ = limits(a_MK.device)
    grid = (min(programs, tile.grid(m, n)),)

    def launch() -> torch.Tensor:
        persistent_kernel[grid](
            a_MK,
            b_KN,
            c_MN,
            m,
            n,
            k,
            BM=tile.bm,
            BN=tile.bn,
            BK=tile.bk,
            GROUP=group,
            PROGRAMS=programs,
            FLATTEN=bool(flatten),
            EVEN_M=m % tile.bm == 0,
            EVEN_N=n % tile.bn == 0,
            EVEN_K=k % tile.bk == 0,
            PRECISION=compute or "ieee",
            num_warps=warps,
            num_stages=stages,
        )
        return c_MN

    return launch
