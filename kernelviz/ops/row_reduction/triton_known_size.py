"""Triton kernels of `row_sum` and `argmax`, compiled for one size of the matrix."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.known_rows import tile_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_rows import is_element, is_row, rows_of_tile
from kernelviz.ops.row_reduction import triton as unknown_size


@triton.jit
def row_sum_known_size_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    rows, columns = rows_of_tile(ROWS, WIDE), tl.arange(0, BLOCK)
    if N < BLOCK and BLOCK <= 8:
        # A thread has whole rows, so that no thread has only masked elements and none waits for another.
        sums = tl.zeros((ROWS,), tl.float32)
        for column in tl.static_range(N):
            sums += tl.load(x_ptr + rows * N + column, mask=is_row(rows, M, ROWS), other=0.0).to(tl.float32)
    else:
        at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
        sums = tl.sum(tl.load(x_ptr + at, mask=inside, other=0.0).to(tl.float32), axis=1)
    tl.store(out_ptr + rows, sums.to(out_ptr.dtype.element_ty), mask=is_row(rows, M, ROWS))


@triton.jit
def argmax_known_size_kernel(
    x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr, WIDE: tl.constexpr
):
    rows, columns = rows_of_tile(ROWS, WIDE), tl.arange(0, BLOCK)
    if N == 1:
        # A row of one element has nothing to compare, so it is not read.
        index = tl.zeros((ROWS,), tl.int32)
    else:
        at, inside = rows[:, None] * N + columns[None, :], is_element(rows, columns, M, N, ROWS, BLOCK)
        # Adding 0 makes -0 the same as 0, which it equals. Integers in the order of the floats, NaN above all.
        x = tl.load(x_ptr + at, mask=inside, other=-float("inf")).to(tl.float32) + 0.0
        bits = x.to(tl.int32, bitcast=True)
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        key = tl.where(x != x, 0x7FFFFFFF, key)
        if N < BLOCK:
            key = tl.where(columns[None, :] < N, key, -2147483648)
        top = tl.max(key, axis=1)
        # The first of equal elements.
        index = tl.min(tl.where(key == top[:, None], columns[None, :], 2147483647), axis=1)
    tl.store(out_ptr + rows, index.to(tl.int64), mask=is_row(rows, M, ROWS))


def bind_row_sum(x_MN: torch.Tensor) -> Launch:
    """A tile of rows a program of a contiguous matrix (M, N), long ones as `triton_block_per_row`.

    Raises BadField if not contiguous.
    """
    return _bind(row_sum_known_size_kernel, x_MN, x_MN.dtype) or unknown_size.bind_row_sum(x_MN)


def bind_argmax(x_MN: torch.Tensor) -> Launch:
    """The same of `argmax`."""
    return _bind(argmax_known_size_kernel, x_MN, torch.int64) or unknown_size.bind_argmax(x_MN)


def _bind(kernel: triton.JITFunction, x_MN: torch.Tensor, dtype: torch.dtype) -> Launch | None:
    require_contiguous(x_MN=x_MN)
    tile, (m, n) = tile_of(x_MN), x_MN.shape
    if tile is None:
        return None
    out_M = torch.empty(m, dtype=dtype, device=x_MN.device)

    def launch() -> torch.Tensor:
        kernel[(tile.programs,)](
            x_MN, out_M, M=m, N=n, ROWS=tile.rows, BLOCK=tile.block, WIDE=tile.wide, num_warps=tile.warps
        )
        return out_M

    return launch
