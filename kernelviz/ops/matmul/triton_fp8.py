"""Triton kernels of `scaled_matmul` and `block_scaled_matmul`: through pointers (sm_89 and later), and by TMA (sm_90)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.kernels.triton_scratch import ScratchContext
from kernelviz.ops.matmul.reference_fp8 import BLOCK, PRECISE
from kernelviz.ops.matmul.triton import limits
from kernelviz.ops.matmul.triton_persistent import _tile_position


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """What one program computes and how: rows × columns of the product, in steps of 128 of K.

    `group`: rows of tiles that are computed together. `flatten`: one loop over all tiles of a program and their steps.
    """

    rows: int
    columns: int
    warps: int
    stages: int
    group: int
    flatten: int = 0

    def count(self, m: int, n: int) -> int:
        """The tiles of a product."""
        return -(-m // self.rows) * -(-n // self.columns)


@triton.jit
def scaled_grouped_kernel(
    a_ptr,
    b_ptr,
    a_scale_ptr,
    b_scale_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    BLOCKS: tl.constexpr,
    EVEN_K: tl.constexpr,
    TERMS: tl.constexpr,
):
    tile_m, tile_n = _tile_position(tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(n, BN), GROUP)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    # 64-bit where a row number is multiplied by a row length. Rows outside of the matrices read the last one, and are not stored.
    a_ptrs = a_ptr + tl.minimum(rows, m - 1).to(tl.int64)[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + tl.minimum(columns, n - 1).to(tl.int64)[:, None] * k + depth[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        if EVEN_K:
            a = tl.load(a_ptrs + start)
            b = tl.load(b_ptrs + start)
        else:
            inside = start + depth < k
            a = tl.load(a_ptrs + start, mask=inside[None, :], other=0.0)
            b = tl.load(b_ptrs + start, mask=inside[None, :], other=0.0)
        if BLOCKS:
            block = start // BK
            a_scale = tl.load(a_scale_ptr + block * m + tl.minimum(rows, m - 1))
            b_scale = tl.load(b_scale_ptr + (tile_n * BN // 128) * tl.cdiv(k, BK) + block)
            acc += tl.dot(a, tl.trans(b)) * (a_scale * b_scale)[:, None]
        else:
            acc = tl.dot(a, tl.trans(b), acc, max_num_imprecise_acc=TERMS)
    if not BLOCKS:
        acc = acc * (tl.load(a_scale_ptr) * tl.load(b_scale_ptr))
    c_ptrs = c_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


@triton.jit
def scaled_descriptors_kernel(
    a_ptr,
    b_ptr,
    a_scale_ptr,
    b_scale_ptr,
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
    BLOCKS: tl.constexpr,
    TERMS: tl.constexpr,
):
    # TMA reads zeros outside the matrices and writes nothing there, and computes addresses in 64 bits.
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [BN, BK])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN])
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    steps = tl.cdiv(k, BK)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=FLATTEN):
        tile_m, tile_n = _tile_position(tile, tiles_m, tiles_n, GROUP)
        row = tile_m * BM
        column = tile_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            a_tile = a.load([row, step * BK])
            b_tile = b.load([column, step * BK])
            if BLOCKS:
                rows = tl.minimum(row + tl.arange(0, BM), m - 1)
                a_scale = tl.load(a_scale_ptr + step * m + rows)
                b_scale = tl.load(b_scale_ptr + (column // 128) * steps + step)
                acc += tl.dot(a_tile, b_tile.T) * (a_scale * b_scale)[:, None]
            else:
                acc = tl.dot(a_tile, b_tile.T, acc, max_num_imprecise_acc=TERMS)
        if not BLOCKS:
            acc = acc * (tl.load(a_scale_ptr) * tl.load(b_scale_ptr))
        c.store([row, column], acc.to(c_ptr.dtype.element_ty))


def bind_grouped(
    a_MK: torch.Tensor,
    b_NK: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    tile: Tile,
    *,
    compute: str | None = None,
    blocks: bool = False,
) -> Launch:
    """Launch of `scaled_grouped_kernel` over contiguous matrices (M, K) and (N, K) of e4m3.

    With `blocks` a tile has at most 128 columns, which share their scales of B. Raises BadField for tensors that are not
    contiguous.
    """
    require_contiguous(a_MK=a_MK, b_NK=b_NK, a_scale=a_scale, b_scale=b_scale)
    (m, k), n = a_MK.shape, b_NK.shape[0]
    c_MN = torch.empty((m, n), dtype=torch.bfloat16, device=a_MK.device)
    grid = (tile.count(m, n),)
    terms = BLOCK if compute == PRECISE else None  # None: Triton leaves all of K to the tensor core

    def launch() -> torch.Tensor:
        scaled_grouped_kernel[grid](
            a_MK,
            b_NK,
            a_scale,
            b_scale,
            c_MN,
            m,
            n,
            k,
            BM=tile.rows,
            BN=tile.columns,
            BK=BLOCK,
            GROUP=tile.group,
            BLOCKS=blocks,
            EVEN_K=k % BLOCK == 0,
            TERMS=terms,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        return c_MN

    return launch


def bind_descriptors(
    a_MK: torch.Tensor,
    b_NK: torch.Tensor,
    a_scale: torch.Tensor,
    b_scale: torch.Tensor,
    tile: Tile,
    *,
    compute: str | None = None,
    blocks: bool = False,
) -> Launch:
    """Launch of `scaled_descriptors_kernel`, one program for each SM, over contiguous matrices (M, K) and (N, K) of e4m3.

    With `blocks` a tile has at most 128 columns, which share their scales of B. Raises BadField for tensors that are not
    contiguous, and for rows that TMA cannot address.
    """
    require_contiguous(a_MK=a_MK, b_NK=b_NK, a_scale=a_scale, b_scale=b_scale)
    (m, k), n = a_MK.shape, b_NK.shape[0]
    require_pitch("k", k, 1)
    require_pitch("n", n, 2)
    c_MN = torch.empty((m, n), dtype=torch.bfloat16, device=a_MK.device)
    programs, _ = limits(a_MK.device)
    grid = (min(programs, tile.count(m, n)),)
    kernel = scaled_descriptors_kernel[grid]
    scratch = ScratchContext(a_MK.device)

    def launch() -> torch.Tensor:
        scratch.launch(
            kernel,
            a_MK,
            b_NK,
            a_scale,
            b_scale,
            c_MN,
            m,
            n,
            k,
            BM=tile.rows,
            BN=tile.columns,
            BK=BLOCK,
            GROUP=tile.group,
            PROGRAMS=programs,
            FLATTEN=bool(tile.flatten),
            BLOCKS=blocks,
            TERMS=BLOCK if compute == PRECISE else None,  # None: Triton leaves all of K to the tensor core
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        return c_MN

    return launch
