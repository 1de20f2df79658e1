"""Triton kernel of `grouped_matmul` that loads and stores by TMA, through tensor descriptors that it makes on the device."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.kernels.triton_scratch import ScratchContext
from kernelviz.ops.matmul.triton import limits
from kernelviz.ops.matmul.triton_groups import _row_tiles, _tile_position, most_tiles, scanned


@triton.jit
def grouped_descriptors_kernel(
    x_ptr,
    w_ptr,
    offsets_ptr,
    y_ptr,
    rows,
    groups,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    BAND: tl.constexpr,
    PARTS: tl.constexpr,
    GROUPS: tl.constexpr,
    PROGRAMS: tl.constexpr,
):
    # A tile of x or w may reach into the next group. What is multiplied there is not stored.
    x = tl.make_tensor_descriptor(x_ptr, [rows, k], [k, 1], [BM, BK])
    w = tl.make_tensor_descriptor(w_ptr, [groups * n, k], [k, 1], [BN, BK])
    y = tl.make_tensor_descriptor(y_ptr, [rows, n], [n, 1], [BM, BN // PARTS])
    tiles_n = tl.cdiv(n, BN)
    steps = tl.cdiv(k, BK)
    _, _, row_tiles = _row_tiles(offsets_ptr, groups, BM, GROUPS)
    for tile in range(tl.program_id(0), tl.sum(row_tiles, 0) * tiles_n, PROGRAMS):
        group, row, column, end = _tile_position(tile, offsets_ptr, groups, tiles_n, BM, BN, BAND, GROUPS)
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            acc = tl.dot(x.load([row, step * BK]), w.load([group * n + column, step * BK]).T, acc)
        product = acc.to(y_ptr.dtype.element_ty)
        if row + BM <= end:
            if PARTS == 1:
                y.store([row, column], product)
            else:
                left, right = tl.split(tl.permute(tl.reshape(product, (BM, 2, BN // 2)), (0, 2, 1)))
                y.store([row, column], left)
                y.store([row, column + BN // 2], right)
        else:
            # TMA would write the rows of the next group as well.
            rows_here = row + tl.arange(0, BM)
            columns = column + tl.arange(0, BN)
            y_ptrs = y_ptr + rows_here.to(tl.int64)[:, None] * n + columns[None, :]
            tl.store(y_ptrs, product, mask=(rows_here < end)[:, None] & (columns < n)[None, :])


def bind_descriptors(
    x_TK: torch.Tensor,
    w_GNK: torch.Tensor,
    offsets_G: torch.Tensor,
    *,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    stages: int,
    warps: int,
    band: int,
    parts: int,
) -> Launch:
    """Launch of `grouped_descriptors_kernel`, one program for each SM, over contiguous x (T, K) and w (G, N, K) of 16-bit floats
    and int32 offsets (G,). `parts`: stores of a tile of the product, 1 or 2.

    Raises BadField for tensors that are not contiguous, and for rows that TMA cannot address.
    """
    require_contiguous(x_TK=x_TK, w_GNK=w_GNK, offsets_G=offsets_G)
    (rows, k), (groups, n) = x_TK.shape, w_GNK.shape[:2]
    require_pitch("k", k, x_TK.element_size())
    require_pitch("n", n, x_TK.element_size())
    y_TN = torch.empty((rows, n), dtype=x_TK.dtype, device=x_TK.device)
    programs, _ = limits(x_TK.device)
    grid = (min(programs, most_tiles(rows, groups, n, tile_m, tile_n)),)
    kernel = grouped_descriptors_kernel[grid]
    scratch = ScratchContext(x_TK.device)

    def launch() -> torch.Tensor:
        scratch.launch(
            kernel,
            x_TK,
            w_GNK,
            offsets_G,
            y_TN,
            rows,
            groups,
            n,
            k,
            BM=tile_m,
            BN=tile_n,
            BK=tile_k,
            BAND=band,
            PARTS=parts,
            GROUPS=scanned(groups),
            PROGRAMS=programs,
            num_warps=warps,
            num_stages=stages,
        )
        return y_TN

    return launch
