"""Triton kernels of `softmax` and of its backward pass, compiled for one size of the matrix."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.known_rows import tile_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_rows import is_element, rows_of_tile
from kernelviz.ops.softmax.triton import bind_block_per_row
from kernelviz.ops.softmax.triton_backward import bind_block_per_row as bind_block_per_row_backward


@triton.jit
def known_size_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    rows, columns = rows_of_tile(ROWS, WIDE), tl.arange(0, BLOCK)
    at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
    x = tl.load(x_ptr + at, mask=inside, other=-float("inf")).to(tl.float32)
    e = tl.exp(x - tl.max(x, axis=1)[:, None])
    y = e * (1.0 / tl.sum(e, axis=1))[:, None]
    tl.store(out_ptr + at, y.to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def known_size_backward_kernel(
    y_ptr, dy_ptr, dx_ptr, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    rows, columns = rows_of_tile(ROWS, WIDE), tl.arange(0, BLOCK)
    at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
    y = tl.load(y_ptr + at, mask=inside, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + at, mask=inside, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(y * dy, axis=1)[:, None])
    tl.store(dx_ptr + at, dx.to(dx_ptr.dtype.element_ty), mask=inside)


def bind_known_size(x_MN: torch.Tensor) -> Launch:
    """A tile of rows a program of a contiguous matrix (M, N), longer ones as `bind_block_per_row`.

    Raises BadField if not contiguous.
    """
    require_contiguous(x_MN=x_MN)
    return _forward(x_MN, torch.empty_like(x_MN)) or bind_block_per_row(x_MN)


def bind_known_size_backward(x_MN: torch.Tensor, dy_MN: torch.Tensor) -> Staged:
    """The backward pass of `bind_known_size`, after its forward pass; errors as above."""
    require_contiguous(x_MN=x_MN, dy_MN=dy_MN)
    y_MN, dx_MN = torch.empty_like(x_MN), torch.empty_like(x_MN)
    forward, tile, (m, n) = _forward(x_MN, y_MN), tile_of(x_MN), x_MN.shape
    if forward is None or tile is None:
        return bind_block_per_row_backward(x_MN, dy_MN)

    def launch() -> torch.Tensor:
        known_size_backward_kernel[(tile.programs,)](
            y_MN,
            dy_MN,
            dx_MN,
            M=m,
            N=n,
            ROWS=tile.rows,
            BLOCK=tile.block,
            WIDE=tile.wide,
            num_warps=tile.warps,
        )
        return dx_MN

    return Staged(forward, launch)


def _forward(x_MN: torch.Tensor, out_MN: torch.Tensor) -> Launch | None:
    tile, (m, n) = tile_of(x_MN), x_MN.shape
    if tile is None:
        return None

    def launch() -> torch.Tensor:
        known_size_kernel[(tile.programs,)](
            x_MN, out_MN, M=m, N=n, ROWS=tile.rows, BLOCK=tile.block, WIDE=tile.wide, num_warps=tile.warps
        )
        return out_MN

    return launch
