"""Triton kernel of the casts of few elements or of whole vectors, compiled for their number."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.cast.triton import bind_cast
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_size import MOST, indexes, programs
from kernelviz.ops.kernels.triton_known_vectors import vector_programs


@triton.jit
def cast_known_size_kernel(x_ptr, out_ptr, N: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    offsets = indexes(N, BLOCK, WIDTH)
    x = tl.load(x_ptr + offsets).to(tl.float32)
    # To fp8 saturating, as the GPU's instruction does.
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty))


def bind_known_size(x_N: torch.Tensor, to: torch.dtype) -> Launch:
    """One launch without a size; as `bind_cast` more than 2^20 elements, unless they are whole vectors.

    Raises BadField for a vector that is not contiguous.
    """
    require_contiguous(x_N=x_N)
    n = x_N.numel()
    known = programs(n, light=True) or vector_programs(n, x_N.element_size())
    if known is None:
        return bind_cast(x_N, to, block=2 * MOST)
    out_N = torch.empty_like(x_N, dtype=to)
    constants = {"N": n, "BLOCK": known.elements, "WIDTH": known.width}

    def launch() -> torch.Tensor:
        cast_known_size_kernel[(known.count,)](x_N, out_N, **constants, num_warps=known.warps)
        return out_N

    return launch
