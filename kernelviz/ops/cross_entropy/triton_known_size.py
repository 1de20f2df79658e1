"""Triton kernels of `cross_entropy`, of its gradient, and of both at once, compiled for one size of the logits."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.cross_entropy import triton as unknown_size
from kernelviz.ops.kernels.known_rows import tile_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_rows import is_element, is_row, rows_of_tile


@triton.jit
def known_size_kernel(
    x_ptr,
    label_ptr,
    loss_ptr,
    sum_ptr,
    dx_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
    SAVES: tl.constexpr,
    GRADIENT: tl.constexpr,
):
    rows, columns = rows_of_tile(ROWS, WIDE), tl.arange(0, BLOCK)
    at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
    of_row = is_row(rows, M, ROWS)
    label = tl.load(label_ptr + rows, mask=of_row, other=0)
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf")).to(tl.float32)
    chosen = tl.load(x_ptr + rows * N + label, mask=of_row, other=0.0).to(tl.float32)
    top = tl.max(x, axis=1)
    e = tl.exp(x - top[:, None])
    total = tl.sum(e, axis=1)
    tl.store(loss_ptr + rows, (tl.log(total) + (top - chosen)).to(loss_ptr.dtype.element_ty), mask=of_row)
    if SAVES:
        tl.store(sum_ptr + rows, tl.log(total) + top, mask=of_row)
    if GRADIENT:
        dx = e * (1.0 / total)[:, None] - tl.where(columns[None, :] == label.to(tl.int32)[:, None], 1.0, 0.0)
        tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


@triton.jit
def known_size_backward_kernel(
    x_ptr,
    label_ptr,
    sum_ptr,
    dloss_ptr,
    dx_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
):
    rows, columns = rows_of_tile(ROWS, WIDE), tl.arange(0, BLOCK)
    at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
    of_row = is_row(rows, M, ROWS)
    x = tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32)
    if N == 1:
        # The only class is the label, so the labels, a third of the bytes of fp32, are not read.
        chosen = tl.full((ROWS, BLOCK), 1.0, tl.float32)
    else:
        label = tl.load(label_ptr + rows, mask=of_row, other=0).to(tl.int32)
        chosen = tl.where(columns[None, :] == label[:, None], 1.0, 0.0)
    total = tl.load(sum_ptr + rows, mask=of_row, other=0.0)
    slope = tl.load(dloss_ptr + rows, mask=of_row, other=0.0).to(tl.float32)
    dx = (tl.exp(x - total[:, None]) - chosen) * slope[:, None]
    tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def bind_loss(logits_MV: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """The losses, a tile of rows a program of contiguous logits (M, V); long rows as `triton_block_per_row`.

    Raises BadField if not contiguous.
    """
    require_contiguous(logits_MV=logits_MV, labels_M=labels_M)
    return _losses(logits_MV, labels_M, None, None) or unknown_size.bind_block_per_row(logits_MV, labels_M)


def bind_with_grad(logits_MV: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """The losses and their gradient; errors and long rows as above."""
    require_contiguous(logits_MV=logits_MV, labels_M=labels_M)
    launch = _losses(logits_MV, labels_M, None, torch.empty_like(logits_MV))
    return launch or unknown_size.bind_block_per_row_with_grad(logits_MV, labels_M)


def bind_backward(logits_MV: torch.Tensor, labels_M: torch.Tensor, dloss_M: torch.Tensor) -> Staged:
    """The gradient of the logits, after a forward pass that writes ln Σ exp; long rows as `triton_online`. Errors as above."""
    require_contiguous(logits_MV=logits_MV, labels_M=labels_M, dloss_M=dloss_M)
    m, n = logits_MV.shape
    sums_M = torch.empty(m, dtype=torch.float32, device=logits_MV.device)
    forward, tile = _losses(logits_MV, labels_M, sums_M, None), tile_of(logits_MV)
    if forward is None or tile is None:
        return unknown_size.bind_backward(logits_MV, labels_M, dloss_M)
    dx_MV = torch.empty_like(logits_MV)

    def launch() -> torch.Tensor:
        known_size_backward_kernel[(tile.programs,)](
            logits_MV,
            labels_M,
            sums_M,
            dloss_M,
            dx_MV,
            M=m,
            N=n,
            ROWS=tile.rows,
            BLOCK=tile.block,
            WIDE=tile.wide,
            num_warps=tile.warps,
        )
        return dx_MV

    return Staged(forward, launch)


def _losses(
    logits_MV: torch.Tensor, labels_M: torch.Tensor, sums_M: torch.Tensor | None, dx_MV: torch.Tensor | None
) -> Launch | None:
    tile, (m, n) = tile_of(logits_MV), logits_MV.shape
    if tile is None:
        return None
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)

    def launch() -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        known_size_kernel[(tile.programs,)](
            logits_MV,
            labels_M,
            loss_M,
            sums_M,
            dx_MV,
            M=m,
            N=n,
            ROWS=tile.rows,
            BLOCK=tile.block,
            WIDE=tile.wide,
            SAVES=sums_M is not None,
            GRADIENT=dx_MV is not None,
            num_warps=tile.warps,
        )
        return loss_M if dx_MV is None else (loss_M, dx_MV)

    return launch
