"""Triton kernel of `matmul` that loads and stores by TMA, through tensor descriptors that it makes on the device."""

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
def descriptors_kernel(
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
    WARP_SPECIALISED: tl.constexpr,
):
    # TMA reads zeros outside the matrices and writes nothing there, and computes addresses in 64 bits.
    a = tl.make_tensor_descriptor(a_ptr, [m, k], [k, 1], [BM, BK])
    b = tl.make_tensor_descriptor(b_ptr, [k, n], [n, 1], [BK, BN])
    c = tl.make_tensor_descriptor(c_ptr, [m, n], [n, 1], [BM, BN // PARTS])
    tiles_m = tl.cdiv(m, BM)
    tiles_n = tl.cdiv(n, BN)
    steps = tl.cdiv(k, BK)
    for tile in tl.range(
        tl.program_id(0), tiles_m * tiles_n, PROGRAMS, flatten=FLATTEN, warp_specialize=WARP_SPECIALISED
    ):
        tile_m, tile_n = _tile_position(tile, tiles_m, tiles_n, GROUP)
        row = tile_m * BM
        column = tile_n * BN
        acc = tl.zeros((BM, BN), tl.float32)
        for step in range(steps):
            acc = tl.dot(a.load([row, step * BK]), b.load([step * BK, column]), acc)
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


def bind_descriptors(
    a_MK: torch.Tensor,
    b_KN: torch.Tensor,
    *,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    stages: int,
    group: int,
    warps: int = 4,
    parts: int = 1,
    flatten: int = 0,
    warp_specialised: bool = False,
) -> Launch:
    """Launch of `descriptors_kernel`, one program for each SM, over contiguous matrices (M, K) and (K, N) of 16-bit floats.

    `parts`: stores of a tile of the product, 1, 2 or 4. Warps are specialised with 4 `warps` and 1 part only (Triton 3.6, 3.7).
    Raises BadField for matrices that are not contiguous, and for rows that TMA cannot address.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    require_pitch("k", k, a_MK.element_size())
    require_pitch("n", n, a_MK.element_size())
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    programs, _ = limits(a_MK.device)
    grid = (min(programs, -(-m // tile_m) * -(-n // tile_n)),)
    kernel = descriptors_kernel[grid]
    scratch = ScratchContext(a_MK.device)

    def launch() -> torch.Tensor:
        scratch.launch(
            kernel,
            a_MK,
            b_KN,
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
            WARP_SPECIALISED=warp_specialised,
            num_warps=warps,
            num_stages=stages,
        )
        return c_MN

    return launch
