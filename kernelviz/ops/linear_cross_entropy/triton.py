"""Triton kernels of `linear_cross_entropy` that reduce tiles of logits in registers: loads through pointers, any size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.kernels.triton_divisors import divisor_of
from kernelviz.ops.linear_cross_entropy.tiles import Tile, tile_for
from kernelviz.ops.linear_cross_entropy.vocabulary_chunks import bind_products, scratch

GROUP = 8
"""Rows of tiles that neighbouring programs share."""
COMBINED_ROWS, COMBINED_TILES = 32, 64
"""Rows of a program that combines the parts of rows, and tiles of the vocabulary that it reads at a time."""


@triton.jit
def _tile_position(tile, tiles_m, tiles_v, GROUP: tl.constexpr):
    """Row and column of a tile: GROUP rows of tiles are traversed column by column, so that their rows of x are in L2."""
    group = tile // (GROUP * tiles_v)
    rows_in_group = min(tiles_m - group * GROUP, GROUP)
    within = tile % (GROUP * tiles_v)
    return group * GROUP + within % rows_in_group, within // rows_in_group


@triton.jit
def _reduce_tile(
    acc,
    tile_m,
    tile_v,
    label_ptr,
    top_ptr,
    sum_ptr,
    chosen_ptr,
    m,
    v,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BRANCH: tl.constexpr,
):
    """Store the maximum and Σ exp(z - maximum) of each row of a tile of logits, and the label's logit where it is in the tile.

    BRANCH: few tiles have the label of any of their rows, and only those are searched for it.
    """
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_v * BV + tl.arange(0, BV)
    z = tl.where((columns < v)[None, :], acc, -float("inf"))
    top = tl.max(z, axis=1)
    total = tl.sum(tl.exp(z - top[:, None]), axis=1)
    # 64-bit: the number of parts, M times the tiles of the vocabulary, may pass 2^31.
    parts = tile_v.to(tl.int64) * m + rows
    tl.store(top_ptr + parts, top, mask=rows < m)
    tl.store(sum_ptr + parts, total, mask=rows < m)
    label = tl.load(label_ptr + rows, mask=rows < m, other=-1).to(tl.int32)
    inside = (label >= tile_v * BV) & (label < tile_v * BV + BV)
    if BRANCH:
        if tl.max(inside.to(tl.int32), axis=0) > 0:
            chosen = tl.sum(tl.where(columns[None, :] == label[:, None], acc, 0.0), axis=1)
            tl.store(chosen_ptr + rows, chosen, mask=inside)
    else:
        chosen = tl.sum(tl.where(columns[None, :] == label[:, None], acc, 0.0), axis=1)
        tl.store(chosen_ptr + rows, chosen, mask=inside)


@triton.jit
def _logits_of_tile(
    x_ptr,
    w_ptr,
    rows,
    columns,
    m,
    v,
    h,
    DIVISOR: tl.constexpr,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BH: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_V: tl.constexpr,
    EVEN_H: tl.constexpr,
):
    """Logits of some rows and columns, added up in fp32. What is outside of x or w is multiplied as zero."""
    # The same number, of which the compiler now knows a divisor: loads of so many elements are aligned.
    h = h // DIVISOR * DIVISOR
    depth = tl.arange(0, BH)
    # 64-bit where a row number is multiplied by a row length: M * H and V * H may pass 2^31.
    x_ptrs = x_ptr + rows.to(tl.int64)[:, None] * h + depth[None, :]
    w_ptrs = w_ptr + columns.to(tl.int64)[None, :] * h + depth[:, None]
    acc = tl.zeros((BM, BV), tl.float32)
    for start in range(0, h, BH):
        left = EVEN_H | (start + depth < h)
        x = tl.load(x_ptrs, mask=(EVEN_M | (rows < m))[:, None] & left[None, :], other=0.0)
        w = tl.load(w_ptrs, mask=left[:, None] & (EVEN_V | (columns < v))[None, :], other=0.0)
        acc = tl.dot(x, w, acc, input_precision="ieee")
        x_ptrs += BH
        w_ptrs += BH
    return acc


@triton.jit
def tiles_kernel(
    x_ptr,
    w_ptr,
    label_ptr,
    top_ptr,
    sum_ptr,
    chosen_ptr,
    m,
    v,
    h,
    DIVISOR: tl.constexpr,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BH: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_V: tl.constexpr,
    EVEN_H: tl.constexpr,
):
    tile_m, tile_v = _tile_position(tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(v, BV), GROUP)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_v * BV + tl.arange(0, BV)
    acc = _logits_of_tile(x_ptr, w_ptr, rows, columns, m, v, h, DIVISOR, BM, BV, BH, EVEN_M, EVEN_V, EVEN_H)
    _reduce_tile(acc, tile_m, tile_v, label_ptr, top_ptr, sum_ptr, chosen_ptr, m, v, BM, BV, True)


@triton.jit
def combine_kernel(
    top_ptr, sum_ptr, chosen_ptr, loss_ptr, whole_ptr, m, tiles_v, BM: tl.constexpr, TILES: tl.constexpr
):
    """The loss and ln Σ exp of each row from the maxima and sums of its tiles."""
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    tiles = tl.arange(0, TILES)
    top = tl.full((BM,), -3.4028234663852886e38, tl.float32)  # not -inf: -inf - -inf is NaN
    total = tl.zeros((BM,), tl.float32)
    for start in range(0, tiles_v, TILES):
        mask = (start + tiles < tiles_v)[:, None] & (rows < m)[None, :]
        parts = (start + tiles).to(tl.int64)[:, None] * m + rows[None, :]
        tops = tl.load(top_ptr + parts, mask=mask, other=-float("inf"))
        sums = tl.load(sum_ptr + parts, mask=mask, other=0.0)
        new_top = tl.maximum(top, tl.max(tops, axis=0))
        total = total * tl.exp(top - new_top) + tl.sum(sums * tl.exp(tops - new_top[None, :]), axis=0)
        top = new_top
    chosen = tl.load(chosen_ptr + rows, mask=rows < m, other=0.0)
    tl.store(loss_ptr + rows, (tl.log(total) + (top - chosen)).to(loss_ptr.dtype.element_ty), mask=rows < m)
    tl.store(whole_ptr + rows, tl.log(total) + top, mask=rows < m)


@triton.jit
def gradient_kernel(
    x_ptr,
    w_ptr,
    label_ptr,
    whole_ptr,
    dloss_ptr,
    dz_ptr,
    m,
    v,
    h,
    first,
    pitch,
    DIVISOR: tl.constexpr,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BH: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_V: tl.constexpr,
    EVEN_H: tl.constexpr,
):
    """dz = dloss (p - 1[label]) of `v` columns of the vocabulary from number `first` on, whose rows w_ptr points to."""
    tile_m, tile_v = _tile_position(tl.program_id(0), tl.cdiv(m, BM), tl.cdiv(v, BV), GROUP)
    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_v * BV + tl.arange(0, BV)
    acc = _logits_of_tile(x_ptr, w_ptr, rows, columns, m, v, h, DIVISOR, BM, BV, BH, EVEN_M, EVEN_V, EVEN_H)
    label = tl.load(label_ptr + rows, mask=rows < m, other=-1).to(tl.int32)
    whole = tl.load(whole_ptr + rows, mask=rows < m, other=0.0)
    dloss = tl.load(dloss_ptr + rows, mask=rows < m, other=0.0).to(tl.float32)
    p = tl.exp(acc - whole[:, None])
    dz = (p - tl.where((first + columns)[None, :] == label[:, None], 1.0, 0.0)) * dloss[:, None]
    dz_ptrs = dz_ptr + rows.to(tl.int64)[:, None] * pitch + columns[None, :]
    tl.store(dz_ptrs, dz.to(dz_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < v)[None, :])


@dataclass(frozen=True, slots=True)
class Parts:
    """What the kernels write between each other: maxima and sums of each tile (T, M), logits of labels, ln Σ exp (M,)."""

    top_TM: torch.Tensor
    sum_TM: torch.Tensor
    chosen_M: torch.Tensor
    whole_M: torch.Tensor
    loss_M: torch.Tensor

    def combine(self) -> torch.Tensor:
        """The losses, from what the tiles wrote."""
        tiles, m = self.top_TM.shape
        combine_kernel[(triton.cdiv(m, COMBINED_ROWS),)](
            self.top_TM,
            self.sum_TM,
            self.chosen_M,
            self.loss_M,
            self.whole_M,
            m,
            tiles,
            BM=COMBINED_ROWS,
            TILES=COMBINED_TILES,
            num_warps=4,
        )
        return self.loss_M


def parts_of(x_MH: torch.Tensor, tiles: int) -> Parts:
    """Memory for the parts of the rows of x."""
    m, device = x_MH.shape[0], x_MH.device
    top_TM, sum_TM = (torch.empty((tiles, m), dtype=torch.float32, device=device) for _ in range(2))
    chosen_M, whole_M = (torch.empty(m, dtype=torch.float32, device=device) for _ in range(2))
    return Parts(top_TM, sum_TM, chosen_M, whole_M, torch.empty(m, dtype=x_MH.dtype, device=device))


def bind_loss(x_MH: torch.Tensor, w_VH: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """Losses (M,) of contiguous x (M, H), w (V, H) and labels (M,); raises BadField if one is not contiguous."""
    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M)
    run, parts = _tiles(x_MH, w_VH, labels_M)

    def launch() -> torch.Tensor:
        run()
        return parts.combine()

    return launch


def bind_backward(x_MH: torch.Tensor, w_VH: torch.Tensor, labels_M: torch.Tensor, dloss_M: torch.Tensor) -> Staged:
    """Gradients of x and w, from the ln Σ exp that a forward pass wrote; raises BadField for inputs that are not contiguous."""
    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M, dloss_M=dloss_M)
    m, h = x_MH.shape
    run, parts = _tiles(x_MH, w_VH, labels_M)
    dz_MC = scratch(x_MH, w_VH.shape[0])
    tile = _tile(x_MH, dz_MC.shape[1])

    def forward() -> None:
        run()
        parts.combine()

    def write(first: int, columns: int) -> None:
        gradient_kernel[(tile.grid(m, columns),)](
            x_MH,
            w_VH[first:],
            labels_M,
            parts.whole_M,
            dloss_M,
            dz_MC,
            m,
            columns,
            h,
            first,
            dz_MC.shape[1],
            DIVISOR=divisor_of(h),
            BM=tile.bm,
            BV=tile.bv,
            BH=tile.bh,
            GROUP=GROUP,
            EVEN_M=m % tile.bm == 0,
            EVEN_V=columns % tile.bv == 0,
            EVEN_H=h % tile.bh == 0,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )

    return Staged(forward, bind_products(x_MH, w_VH, dz_MC, write))


def _tile(x_MH: torch.Tensor, v: int) -> Tile:
    return tile_for(x_MH.shape[0], v, x_MH.element_size(), *limits(x_MH.device, without_gpu=MOST_SHARED_BYTES))


def _tiles(x_MH: torch.Tensor, w_VH: torch.Tensor, labels_M: torch.Tensor) -> tuple[Launch, Parts]:
    (m, h), v = x_MH.shape, w_VH.shape[0]
    tile = _tile(x_MH, v)
    parts = parts_of(x_MH, triton.cdiv(v, tile.bv))

    def run() -> torch.Tensor:
        tiles_kernel[(tile.grid(m, v),)](
            x_MH,
            w_VH,
            labels_M,
            parts.top_TM,
            parts.sum_TM,
            parts.chosen_M,
            m,
            v,
            h,
            DIVISOR=divisor_of(h),
            BM=tile.bm,
            BV=tile.bv,
            BH=tile.bh,
            GROUP=GROUP,
            EVEN_M=m % tile.bm == 0,
            EVEN_V=v % tile.bv == 0,
            EVEN_H=h % tile.bh == 0,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        return parts.loss_M

    return run, parts
