"""Triton kernels that copy the rows that ids name. Loads and stores have one type, so bits stay as they are."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous


@triton.jit
def row_kernel(x_ptr, ids_ptr, out_ptr, d, BLOCK: tl.constexpr):
    # 64-bit offsets: ids are, and t * d passes 2^31 on a GPU with 140 GB.
    row = tl.program_id(0).to(tl.int64)
    source = x_ptr + tl.load(ids_ptr + row) * d
    for first in tl.range(0, d, BLOCK):
        at = first + tl.arange(0, BLOCK)
        tl.store(out_ptr + row * d + at, tl.load(source + at, mask=at < d), mask=at < d)


@triton.jit
def tile_kernel(x_ptr, ids_ptr, out_ptr, t, d, pieces, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) // pieces).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns = (tl.program_id(0) % pieces) * BLOCK + tl.arange(0, BLOCK)
    ids = tl.load(ids_ptr + rows, mask=rows < t, other=0)
    inside = (rows < t)[:, None] & (columns < d)[None, :]
    x = tl.load(x_ptr + ids[:, None] * d + columns[None, :], mask=inside)
    tl.store(out_ptr + rows[:, None] * d + columns[None, :], x, mask=inside)


TILE_BYTES = 16 * 1024
WARPS = 8
"""64 bytes a thread of a tile: four 16-byte loads in flight at once."""
SMALL_TILE_BYTES, SMALL_WARPS = 1024, 2
FEWEST_TILES = 128
"""An output of fewer large tiles is cut into small ones, or SMs of an H200 would be left without one."""


def _output(x_VD: torch.Tensor, ids_T: torch.Tensor) -> torch.Tensor:
    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    return torch.empty((ids_T.shape[0], x_VD.shape[1]), dtype=x_VD.dtype, device=x_VD.device)


def bind_row(x_VD: torch.Tensor, ids_T: torch.Tensor) -> Launch:
    """One program a row; raises BadField for tensors that are not contiguous."""
    out_TD = _output(x_VD, ids_T)
    t, d = out_TD.shape
    block = min(triton.next_power_of_2(d), TILE_BYTES // x_VD.element_size())
    warps = max(1, min(WARPS, block * x_VD.element_size() // (32 * 64)))

    def launch() -> torch.Tensor:
        row_kernel[(t,)](x_VD, ids_T, out_TD, d, BLOCK=block, num_warps=warps)
        return out_TD

    return launch


def bind_tile(x_VD: torch.Tensor, ids_T: torch.Tensor) -> Launch:
    """16 KiB a program, 1 KiB of small outputs; raises BadField for tensors that are not contiguous."""
    out_TD = _output(x_VD, ids_T)
    t, d = out_TD.shape
    large = t * d * x_VD.element_size() >= FEWEST_TILES * TILE_BYTES
    tile_bytes, warps = (TILE_BYTES, WARPS) if large else (SMALL_TILE_BYTES, SMALL_WARPS)
    elements = tile_bytes // x_VD.element_size()
    block = min(triton.next_power_of_2(d), elements)
    rows, pieces = elements // block, triton.cdiv(d, block)
    grid = (triton.cdiv(t, rows) * pieces,)

    def launch() -> torch.Tensor:
        tile_kernel[grid](x_VD, ids_T, out_TD, t, d, pieces, ROWS=rows, BLOCK=block, num_warps=warps)
        return out_TD

    return launch
