"""Triton kernel of `scale` of few elements, compiled for their number and the factor."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_size import MOST, indexes, programs
from kernelviz.ops.scale.triton import bind_scale


@triton.jit
def scale_known_size_kernel(
    x_ptr, out_ptr, N: tl.constexpr, SCALE: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    offsets = indexes(N, BLOCK, WIDTH)
    # In fp32, as torch does it: with the scalar rounded to fp16 first, the product would be off by up to two roundings.
    y = tl.load(x_ptr + offsets).to(tl.float32) * SCALE
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty))


def bind_known_size(x_N: torch.Tensor, scale: float) -> Launch:
    """One launch without a size; more than 2^20 elements as `bind_scale`. Raises BadField for a vector that is not contiguous."""
    require_contiguous(x_N=x_N)
    n = x_N.numel()
    known = programs(n, light=True)
    if known is None:
        return bind_scale(x_N, scale, block=MOST)
    out_N = torch.empty_like(x_N)
    constants = {"N": n, "SCALE": scale, "BLOCK": known.elements, "WIDTH": known.width}

    def launch() -> torch.Tensor:
        scale_known_size_kernel[(known.count,)](x_N, out_N, **constants, num_warps=known.warps)
        return out_N

    return launch
