"""Triton kernel of `linear_cross_entropy` that loads by TMA, through tensor descriptors that it makes on the device."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.kernels.triton_scratch import ScratchContext
from kernelviz.ops.linear_cross_entropy.triton import _reduce_tile, _tile_position, parts_of


@triton.jit
def descriptors_kernel(
    x_ptr,
    w_ptr,
    label_ptr,
    top_ptr,
    sum_ptr,
    chosen_ptr,
    m,
    v,
    h,
    BM: tl.constexpr,
    BV: tl.constexpr,
    BH: tl.constexpr,
    GROUP: tl.constexpr,
    PROGRAMS: tl.constexpr,
    FLATTEN: tl.constexpr,
):
    # TMA reads zeros outside the matrices, and computes addresses in 64 bits.
    x = tl.make_tensor_descriptor(x_ptr, [m, h], [h, 1], [BM, BH])
    w = tl.make_tensor_descriptor(w_ptr, [v, h], [h, 1], [BV, BH])
    tiles_m = tl.cdiv(m, BM)
    tiles_v = tl.cdiv(v, BV)
    steps = tl.cdiv(h, BH)
    # FLATTEN makes one loop of the two, so that the first tiles of x and w are loaded while the logits before are reduced.
    for tile in tl.range(tl.program_id(0), tiles_m * tiles_v, PROGRAMS, flatten=FLATTEN):
        tile_m, tile_v = _tile_position(tile, tiles_m, tiles_v, GROUP)
        acc = tl.zeros((BM, BV), tl.float32)
        for step in range(steps):
            acc = tl.dot(x.load([tile_m * BM, step * BH]), w.load([tile_v * BV, step * BH]).T, acc)
        # Triton 3.6 and 3.7 do not compile a branch in loops that were made one.
        _reduce_tile(acc, tile_m, tile_v, label_ptr, top_ptr, sum_ptr, chosen_ptr, m, v, BM, BV, not FLATTEN)


def bind_descriptors(
    x_MH: torch.Tensor,
    w_VH: torch.Tensor,
    labels_M: torch.Tensor,
    *,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    stages: int,
    warps: int,
    group: int,
    flatten: int,
) -> Launch:
    """Launch of `descriptors_kernel`, one program for each SM, over contiguous x (M, H), w (V, H) of 16-bit floats and labels.

    Raises BadField for inputs that are not contiguous, and for rows that TMA cannot address.
    """
    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M)
    (m, h), v = x_MH.shape, w_VH.shape[0]
    require_pitch("h", h, x_MH.element_size())
    programs, _ = limits(x_MH.device)
    tiles_v = triton.cdiv(v, tile_n)
    parts = parts_of(x_MH, tiles_v)
    kernel = descriptors_kernel[(min(programs, triton.cdiv(m, tile_m) * tiles_v),)]
    scratch = ScratchContext(x_MH.device)

    def launch() -> torch.Tensor:
        scratch.launch(
            kernel,
            x_MH,
            w_VH,
            labels_M,
            parts.top_TM,
            parts.sum_TM,
            parts.chosen_M,
            m,
            v,
            h,
            BM=tile_m,
            BV=tile_n,
            BH=tile_k,
            GROUP=group,
            PROGRAMS=programs,
            FLATTEN=bool(flatten),
            num_warps=warps,
            num_stages=stages,
        )
        return parts.combine()

    return launch
