"""Triton kernels of `scatter_add`: atomic additions in fp32, and sums over runs of sorted ids."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous


@triton.jit
def atomics_kernel(sum_ptr, src_ptr, ids_ptr, t, d, pieces, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: t * d passes 2^31 on a GPU with 140 GB.
    rows = (tl.program_id(0) // pieces).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = (tl.program_id(0) % pieces) * BLOCK + tl.arange(0, BLOCK)
    inside = (rows < t)[:, None] & (columns < d)[None, :]
    ids = tl.load(ids_ptr + rows, mask=rows < t, other=0)
    rows_f32 = tl.load(src_ptr + rows[:, None] * d + columns[None, :], mask=inside, other=0.0).to(tl.float32)
    tl.atomic_add(sum_ptr + ids[:, None] * d + columns[None, :], rows_f32, mask=inside, sem="relaxed")


@triton.jit
def segments_kernel(x_ptr, src_ptr, order_ptr, ends_ptr, d, pieces, AT_ONCE: tl.constexpr, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // pieces).to(tl.int64)
    columns = (tl.program_id(0) % pieces) * BLOCK + tl.arange(0, BLOCK)
    begin = tl.load(ends_ptr + row)
    end = tl.load(ends_ptr + row + 1)
    if begin < end:
        at = x_ptr + row * d + columns
        x = tl.load(at, mask=columns < d, other=0.0)
        total = x.to(tl.float32)
        for first in range(begin, end, AT_ONCE):
            which = first + tl.arange(0, AT_ONCE)
            source = tl.load(order_ptr + which, mask=which < end, other=0)
            inside = (which < end)[:, None] & (columns < d)[None, :]
            rows = tl.load(src_ptr + source[:, None] * d + columns[None, :], mask=inside, other=0.0)
            total += tl.sum(rows.to(tl.float32), axis=0)
        tl.store(at, total.to(x_ptr.dtype.element_ty), mask=columns < d)


TILE = 2048
"""Elements of a program of atomic additions: 16 a thread."""
AT_ONCE = 4
"""Rows of a segment in flight at once: 64 bytes a thread with 16-byte vectors."""


def bind_atomics(x_VD: torch.Tensor, src_TD: torch.Tensor, ids_T: torch.Tensor) -> Launch:
    """Tiles of 2048 elements; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    t, d = src_TD.shape
    narrow = x_VD.element_size() < 4
    sum_VD = torch.empty_like(x_VD, dtype=torch.float32) if narrow else x_VD
    block = min(triton.next_power_of_2(d), TILE)
    rows, pieces = TILE // block, triton.cdiv(d, block)
    grid = (triton.cdiv(t, rows) * pieces,)

    def launch() -> torch.Tensor:
        if narrow:
            sum_VD.copy_(x_VD)
        atomics_kernel[grid](sum_VD, src_TD, ids_T, t, d, pieces, ROWS=rows, BLOCK=block, num_warps=4)
        return x_VD.copy_(sum_VD) if narrow else x_VD

    return launch


def bind_segments(x_VD: torch.Tensor, src_TD: torch.Tensor, ids_T: torch.Tensor) -> Launch:
    """A program for each sum and piece of a row; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    v, d = x_VD.shape
    block = min(triton.next_power_of_2(d), 128 * 16 // x_VD.element_size())
    pieces = triton.cdiv(d, block)
    warps = max(1, block * x_VD.element_size() // (32 * 16))
    grid = (v * pieces,)
    every_V1 = torch.arange(v + 1, device=x_VD.device)

    def launch() -> torch.Tensor:
        sorted_T, order_T = torch.sort(ids_T)
        ends_V1 = torch.searchsorted(sorted_T, every_V1)
        segments_kernel[grid](x_VD, src_TD, order_T, ends_V1, d, pieces, AT_ONCE=AT_ONCE, BLOCK=block, num_warps=warps)
        return x_VD

    return launch
