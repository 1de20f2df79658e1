"""Triton kernels of the gated activations of few elements, compiled for their number; which gate is known, too."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.gated.triton import _logistic_argument, _slope, bind_gated, bind_gated_backward
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_known_size import Programs, indexes, programs


@triton.jit
def gated_known_size_kernel(
    a_ptr, b_ptr, out_ptr, N: tl.constexpr, TANH: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr
):
    offsets = indexes(N, BLOCK, WIDTH)
    a = tl.load(a_ptr + offsets).to(tl.float32)
    b = tl.load(b_ptr + offsets).to(tl.float32)
    y = a * tl.sigmoid(_logistic_argument(a, TANH)) * b
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty))


@triton.jit
def gated_backward_known_size_kernel(
    a_ptr,
    b_ptr,
    dy_ptr,
    da_ptr,
    db_ptr,
    N: tl.constexpr,
    TANH: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDTH: tl.constexpr,
):
    offsets = indexes(N, BLOCK, WIDTH)
    a = tl.load(a_ptr + offsets).to(tl.float32)
    b = tl.load(b_ptr + offsets).to(tl.float32)
    dy = tl.load(dy_ptr + offsets).to(tl.float32)
    s = tl.sigmoid(_logistic_argument(a, TANH))
    g = a * s
    dg = s + g * (1.0 - s) * _slope(a, TANH)
    tl.store(da_ptr + offsets, (dy * b * dg).to(da_ptr.dtype.element_ty))
    tl.store(db_ptr + offsets, (dy * g).to(db_ptr.dtype.element_ty))


def _constants(n: int, known: Programs, tanh: bool) -> dict[str, int | bool]:
    return {"N": n, "TANH": tanh, "BLOCK": known.elements, "WIDTH": known.width}


def bind_known_size(a_MN: torch.Tensor, b_MN: torch.Tensor, *, tanh: bool) -> Launch:
    """One launch without a size; more than 2^20 elements as `bind_gated`. Raises BadField for tensors that are not contiguous."""
    require_contiguous(a_MN=a_MN, b_MN=b_MN)
    n = a_MN.numel()
    known = programs(n, narrow=a_MN.element_size() == 4)
    if known is None:
        return bind_gated(a_MN, b_MN, tanh=tanh)
    y_MN = torch.empty_like(a_MN)
    constants = _constants(n, known, tanh)

    def launch() -> torch.Tensor:
        gated_known_size_kernel[(known.count,)](a_MN, b_MN, y_MN, **constants, num_warps=known.warps)
        return y_MN

    return launch


def bind_known_size_backward(a_MN: torch.Tensor, b_MN: torch.Tensor, dy_MN: torch.Tensor, *, tanh: bool) -> Launch:
    """As `bind_known_size`, more than 2^20 elements as `bind_gated_backward`."""
    require_contiguous(a_MN=a_MN, b_MN=b_MN, dy_MN=dy_MN)
    n = a_MN.numel()
    known = programs(n, narrow=True)
    if known is None:
        return bind_gated_backward(a_MN, b_MN, dy_MN, tanh=tanh)
    da_MN, db_MN = torch.empty_like(a_MN), torch.empty_like(b_MN)
    constants = _constants(n, known, tanh)

    def launch() -> tuple[torch.Tensor, ...]:
        gated_backward_known_size_kernel[(known.count,)](
            a_MN, b_MN, dy_MN, da_MN, db_MN, **constants, num_warps=known.warps
        )
        return da_MN, db_MN

    return launch
