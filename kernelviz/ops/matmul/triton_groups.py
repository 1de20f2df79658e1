"""Triton kernels of `grouped_matmul` that load through pointers. They find the group of a tile from the offsets on the device."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.matmul.triton import limits

LEAST_SCANNED = 16


@triton.jit
def _row_tiles(offsets_ptr, groups, BM: tl.constexpr, GROUPS: tl.constexpr):
    """First row, row after the last one, and tiles of BM rows of each group; 0 from number `groups` on."""
    numbers = tl.arange(0, GROUPS)
    ends = tl.load(offsets_ptr + numbers, mask=numbers < groups, other=0)
    begins = tl.load(offsets_ptr + numbers - 1, mask=(numbers > 0) & (numbers < groups), other=0)
    return begins, ends, tl.cdiv(ends - begins, BM)


@triton.jit
def _tile_position(
    tile, offsets_ptr, groups, tiles_n, BM: tl.constexpr, BN: tl.constexpr, BAND: tl.constexpr, GROUPS: tl.constexpr
):
    """Group, first row, first column of a tile, and the row after the last one of its group.

    All tiles of a group come before those of the next one. BAND rows of tiles are traversed column by column, so that the rows
    of x and the weight are in L2.
    """
    begins, ends, row_tiles = _row_tiles(offsets_ptr, groups, BM, GROUPS)
    after = tl.cumsum(row_tiles, 0) * tiles_n  # the number of the first tile after each group
    group = tl.sum((after <= tile).to(tl.int32), 0)
    here = tl.arange(0, GROUPS) == group
    begin = tl.sum(tl.where(here, begins, 0), 0)
    end = tl.sum(tl.where(here, ends, 0), 0)
    number = tile - tl.max(tl.where(after <= tile, after, 0), 0)
    band = number // (BAND * tiles_n)
    rows_in_band = min(tl.cdiv(end - begin, BM) - band * BAND, BAND)
    within = number % (BAND * tiles_n)
    row = begin + (band * BAND + within % rows_in_band) * BM
    return group, row, within // rows_in_band * BN, end


@triton.jit
def _compute_tile(
    x_ptr,
    w_ptr,
    y_ptr,
    group,
    row,
    column,
    end,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    rows = row + tl.arange(0, BM)
    columns = column + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    # 64-bit where a row number is multiplied by a row length: T * K, G * N * K and T * N pass 2^31.
    x_rows = x_ptr + rows.to(tl.int64)[:, None] * k
    w_columns = w_ptr + (group.to(tl.int64) * n + columns)[None, :] * k
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        left = EVEN_K | (start + depth < k)
        x = tl.load(x_rows + (start + depth)[None, :], mask=(rows < end)[:, None] & left[None, :], other=0.0)
        w = tl.load(
            w_columns + (start + depth)[:, None], mask=left[:, None] & (EVEN_N | (columns < n))[None, :], other=0.0
        )
        acc = tl.dot(x, w, acc)
    # Rows from `end` on belong to the next group, which another tile computes.
    y_ptrs = y_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(y_ptrs, acc.to(y_ptr.dtype.element_ty), mask=(rows < end)[:, None] & (columns < n)[None, :])


@triton.jit
def grouped_tiles_kernel(
    x_ptr,
    w_ptr,
    offsets_ptr,
    y_ptr,
    groups,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUPS: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    tiles_n = tl.cdiv(n, BN)
    tile = tl.program_id(0)
    _, _, row_tiles = _row_tiles(offsets_ptr, groups, BM, GROUPS)
    # The host knows only how many tiles there are at most, so the last programs have none.
    if tile < tl.sum(row_tiles, 0) * tiles_n:
        group, row, column, end = _tile_position(tile, offsets_ptr, groups, tiles_n, BM, BN, 1, GROUPS)
        _compute_tile(x_ptr, w_ptr, y_ptr, group, row, column, end, n, k, BM, BN, BK, EVEN_N, EVEN_K)


@triton.jit
def grouped_persistent_kernel(
    x_ptr,
    w_ptr,
    offsets_ptr,
    y_ptr,
    groups,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    BAND: tl.constexpr,
    GROUPS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    tiles_n = tl.cdiv(n, BN)
    _, _, row_tiles = _row_tiles(offsets_ptr, groups, BM, GROUPS)
    for tile in range(tl.program_id(0), tl.sum(row_tiles, 0) * tiles_n, PROGRAMS):
        group, row, column, end = _tile_position(tile, offsets_ptr, groups, tiles_n, BM, BN, BAND, GROUPS)
        _compute_tile(x_ptr, w_ptr, y_ptr, group, row, column, end, n, k, BM, BN, BK, EVEN_N, EVEN_K)


def scanned(groups: int) -> int:
    """How many offsets a program reads at once: all of them, up to the next power of two.

    >>> scanned(8), scanned(16), scanned(130)
    (16, 16, 256)
    """
    return max(LEAST_SCANNED, 1 << (groups - 1).bit_length())


def most_tiles(rows: int, groups: int, n: int, tile_m: int, tile_n: int) -> int:
    """An upper limit of the number of tiles, whatever the offsets are: each group has at most one tile that is not full.

    >>> most_tiles(1024, 8, 256, 128, 128)
    32
    """
    return (rows // tile_m + min(groups, rows)) * -(-n // tile_n)


def bind_tiles(x_TK: torch.Tensor, w_GNK: torch.Tensor, offsets_G: torch.Tensor) -> Launch:
    """Launch of `grouped_tiles_kernel` over contiguous x (T, K) and w (G, N, K) of 16-bit floats and int32 offsets (G,).

    Raises BadField for tensors that are not contiguous.
    """
    require_contiguous(x_TK=x_TK, w_GNK=w_GNK, offsets_G=offsets_G)
    (rows, k), (groups, n) = x_TK.shape, w_GNK.shape[:2]
    y_TN = torch.empty((rows, n), dtype=x_TK.dtype, device=x_TK.device)
    # A tile that a group of average size fills.
    tile_m, warps = (128, 8) if rows > 64 * groups else (64, 4) if rows > 16 * groups else (16, 4)
    tile_n, tile_k, stages = 128, 64, 3
    grid = (most_tiles(rows, groups, n, tile_m, tile_n),)

    def launch() -> torch.Tensor:
        grouped_tiles_kernel[grid](
            x_TK,
            w_GNK,
            offsets_G,
            y_TN,
            groups,
            n,
            k,
            BM=tile_m,
            BN=tile_n,
            BK=tile_k,
            GROUPS=scanned(groups),
            EVEN_N=n % tile_n == 0,
            EVEN_K=k % tile_k == 0,
            num_warps=warps,
            num_stages=stages,
        )
        return y_TN

    return launch


def bind_persistent(
    x_TK: torch.Tensor,
    w_GNK: torch.Tensor,
    offsets_G: torch.Tensor,
    *,
    tile_m: int,
    tile_n: int,
    tile_k_bytes: int,
    warps: int,
    stages: int,
    band: int,
) -> Launch:
    """Launch of `grouped_persistent_kernel`, one program for each SM. Raises BadField for tensors that are not contiguous."""
    require_contiguous(x_TK=x_TK, w_GNK=w_GNK, offsets_G=offsets_G)
    (rows, k), (groups, n) = x_TK.shape, w_GNK.shape[:2]
    y_TN = torch.empty((rows, n), dtype=x_TK.dtype, device=x_TK.device)
    tile_k = tile_k_bytes // x_TK.element_size()
    programs, _ = limits(x_TK.device)
    grid = (min(programs, most_tiles(rows, groups, n, tile_m, tile_n)),)

    def launch() -> torch.Tensor:
        grouped_persistent_kernel[grid](
            x_TK,
            w_GNK,
            offsets_G,
            y_TN,
            groups,
            n,
            k,
            BM=tile_m,
            BN=tile_n,
            BK=tile_k,
            BAND=band,
            GROUPS=scanned(groups),
            PROGRAMS=programs,
            EVEN_N=n % tile_n == 0,
            EVEN_K=k % tile_k == 0,
            num_warps=warps,
            num_stages=stages,
        )
        return y_TN

    return launch
