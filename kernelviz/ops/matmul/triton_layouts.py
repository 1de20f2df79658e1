"""Triton kernel of matrix products that loads operands of either layout by TMA, through tensor descriptors made on the device."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
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
            c.store([row, column], left.to(c_ptr.dtype.element_ty))
            c.store([row, column + BN // 2], right.to(c_ptr.dtype.element_ty))


def bind_layouts(
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    a_transposed: bool = False,
    b_transposed: bool = False,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    stages: int,
    warps: int,
    group: int,
    parts: int,
    flatten: int,
    names: tuple[str, str] = ("a", "b"),
) -> Launch:
    """Launch of `layouts_kernel`, one program for each SM, over contiguous matrices of 16-bit floats.

    `a`: (M, K), or (K, M) if transposed. `b`: (K, N), or (N, K) if transposed. `parts`: stores of a tile of the product, 1 or 2.
    `names`: the axes of the problem that are the rows' lengths of `a` and of `b`, for messages. Raises BadField for matrices that
    are not contiguous, and for rows that TMA cannot address.
    """
    require_contiguous(a=a, b=b)
    m, k = reversed(a.shape) if a_transposed else a.shape
    n = b.shape[0] if b_transposed else b.shape[1]
    require_pitch(names[0], a.shape[1], a.element_size())
    require_pitch(names[1], b.shape[1], b.element_size())
    require_pitch("n", n, a.element_size())
    c_MN = torch.empty((m, n), dtype=a.dtype, device=a.device)
    programs, _ = limits(a.device)
    kernel = layouts_kernel[(min(programs, -(-m // tile_m) * -(-n // tile_n)),)]
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
            BM=tile_m,
            BN=tile_n,
            BK=tile_k,
            GROUP=group,
            PARTS=parts,
            PROGRAMS=programs,
            FLATTEN=bool(flatten),
            A_TRANSPOSED=a_transposed,
            B_TRANSPOSED=b_transposed,
            num_warps=warps,
            num_stages=stages,
        )
        return c_MN

    return launch
