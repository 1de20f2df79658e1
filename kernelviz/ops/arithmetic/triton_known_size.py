"""Triton kernel of `add`, `mul` and `div` of few elements or of whole vectors, compiled for their number."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.arithmetic.triton import _combined, bind_arithmetic
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_size import MOST, indexes, programs
from kernelviz.ops.kernels.triton_known_vectors import vector_programs


@triton.jit
def arithmetic_known_size_kernel(
    x_ptr, y_ptr, out_ptr, N: tl.constexpr, OPERATION: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    offsets = indexes(N, BLOCK, WIDTH)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + offsets, _combined(x, y, OPERATION))


def bind_known_size(x_N: torch.Tensor, y_N: torch.Tensor, operation: str) -> Launch:
    """One launch without a size; as `bind_arithmetic` more than 2^20 elements, unless they are whole vectors.

    Raises BadField if one is not contiguous.
    """
    require_contiguous(x_N=x_N, y_N=y_N)
    n = x_N.numel()
    known = programs(n, light=True) or vector_programs(n, x_N.element_size())
    if known is None:
        return bind_arithmetic(x_N, y_N, operation, block=MOST)
    out_N = torch.empty_like(x_N)
    constants = {"N": n, "OPERATION": operation, "BLOCK": known.elements, "WIDTH": known.width}

    def launch() -> torch.Tensor:
        arithmetic_known_size_kernel[(known.count,)](x_N, y_N, out_N, **constants, num_warps=known.warps)
        return out_N

    return launch
