"""Triton kernel of matrix products that loads operands of either layout by TMA, through tensor descriptors made on the device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.kernels.triton_scratch import ScratchContext
from kernelviz.ops.matmul.triton import limits
from kernelviz.ops.matmul.triton_persistent import _tile_position


@triton.jit
def layouts_kernel(
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
    PARTS: tl.constexpr,
    PROGRAMS: tl.constexpr,
    FLATTEN: tl.constexpr,
    A_TRANSPOSED: tl.constexpr,
    B_TRANSPOSED: tl.constexpr,
):
    # A matrix is described as it is stored; tl.trans only exchanges the axes of a tile that lies in shared memory, and wgmma
    # reads 16-bit elements from there in either order. TMA reads zeros outside the matrices and writes nothing there.
    if A_TRANSPOSED:
        a = tl.make_tensor_descriptor(a_ptr, [k, m], [m, 1], [BK, BM])
    else:
        a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
    if B_TRANSPOSED:
        b = tl.make_tensor_descriptor(b_ptr, [n, k], [k, 1], [BN, BK])
    else:
        b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN // PARTS])
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    steps = tl.cdiv(k, BK)
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=FLATTEN):
        tile_m, tile_n = _tile_position(tile, tiles_m, tiles_n, GROUP)
        row = tile_m * BM
        column = tile_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            a_tile = tl.trans(a.load([step * BK, row])) if A_TRANSPOSED else a.load([row, step * BK])
            b_tile = tl.trans(b.load([column, step * BK])) if B_TRANSPOSED else b.load([step * BK, column])
            acc = tl.dot(a_tile, b_tile, acc)
        # The part that is being stored lies in shared memory: smaller parts leave room for another stage.
        if PARTS == 1:
            c.store([row, column], acc.to(c_ptr.dtype.element_ty))
        else:
            left, right = tl.split(tl.permute(tl.reshape(acc, (BM, 2, BN // 2)), (0, 2, 1)))
            if PARTS == 2:
                c.store([row, column], left.to(c_ptr.dtype.element_ty))
                c.store([row, column + BN // 2], right.to(c_ptr.dtype.element_ty))
            else:
                first, second = tl.split(tl.permute(tl.reshape(left, (BM, 2, BN // 4)), (0, 2, 1)))
                third, fourth = tl.split(tl.permute(tl.reshape(right, (BM, 2, BN // 4)), (0, 2, 1)))
                c.store([row, column], first.to(c_ptr.dtype.element_ty))
                c.store([row, column + BN // 4], second.to(c_ptr.dtype.element_ty))
                c.store([row, column + BN // 2], third.to(c_ptr.dtype.element_ty))
                c.store([row, column + 3 * (BN // 4)], fourth.to(c_ptr.dtype.element_ty))


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """What one program computes and how. `parts`: stores of a tile of the product, 1, 2 or 4. `group`: rows of tiles in L2."""

    tile_m: int
    tile_n: int
    tile_k: int
    stages: int
    warps: int
    group: int
    parts: int
    flatten: bool


def bind_layouts(
    a: torch.Tensor,
    b: torch.Tensor,
    tile: Tile,
    *,
    a_transposed: bool = False,
    b_transposed: bool = False,
    names: tuple[str, str, str],
) -> Launch:
    """Launch of `layouts_kernel`, one program for each SM, over contiguous matrices of 16-bit floats.

    `a`: (M, K), or (K, M) if transposed. `b`: (K, N), or (N, K) if transposed. `names`: the axes of the problem that are the
    lengths of the rows of `a`, `b` and the product, for messages. Raises BadField for rows that TMA cannot address.
    """
    m, k = reversed(a.shape) if a_transposed else a.shape
    n = b.shape[0] if b_transposed else b.shape[1]
    for name, length in zip(names, (a.shape[1], b.shape[1], n), strict=True):
        require_pitch(name, length, a.element_size())
    c_MN = torch.empty((m, n), dtype=a.dtype, device=a.device)
    programs, _ = limits(a.device)
    kernel = layouts_kernel[(min(programs, -(-m // tile.tile_m) * -(-n // tile.tile_n)),)]
    scratch = ScratchContext(a.device)

    def launch() -> torch.Tensor:
        scratch.launch(
            kernel,
            a,
            b,
            c_MN,
            m,
            n,
            k,
            BM=tile.tile_m,
            BN=tile.tile_n,
            BK=tile.tile_k,
            GROUP=tile.group,
            PARTS=tile.parts,
            PROGRAMS=programs,
            FLATTEN=tile.flatten,
            A_TRANSPOSED=a_transposed,
            B_TRANSPOSED=b_transposed,
            num_warps=tile.warps,
            num_stages=tile.stages,
        )
        return c_MN

    return launch
