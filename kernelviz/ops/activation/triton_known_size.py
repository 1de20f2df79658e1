"""Triton kernel of the activations of few elements or whole vectors, compiled for their number and for the function."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.activation.triton import bind_activation
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_gelu import gelu
from kernelviz.ops.kernels.triton_known_size import indexes, programs
from kernelviz.ops.kernels.triton_known_vectors import vector_programs


@triton.jit
def activation_known_size_kernel(
    x_ptr, out_ptr, N: tl.constexpr, FUNCTION: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    offsets = indexes(N, BLOCK, WIDTH)
    x = tl.load(x_ptr + offsets).to(tl.float32)
    if FUNCTION == "relu":
        y = tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL)
    elif FUNCTION == "sigmoid":
        y = tl.sigmoid(x)
    elif FUNCTION == "silu":
        y = x * tl.sigmoid(x)
    else:
        y = gelu(x, out_ptr.dtype.element_ty.primitive_bitwidth == 16)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty))


def bind_known_size(x_N: torch.Tensor, function: str) -> Launch:
    """One launch without a size; as `bind_activation` more than 2^20 elements, unless they are whole vectors.

    Raises BadField if x is not contiguous.
    """
    require_contiguous(x_N=x_N)
    n = x_N.numel()
    known = programs(n, light=function == "relu") or vector_programs(n, x_N.element_size())
    if known is None:
        return bind_activation(x_N, function)
    out_N = torch.empty_like(x_N)
    constants = {"N": n, "FUNCTION": function, "BLOCK": known.elements, "WIDTH": known.width}

    def launch() -> torch.Tensor:
        activation_known_size_kernel[(known.count,)](x_N, out_N, **constants, num_warps=known.warps)
        return out_N

    return launch
