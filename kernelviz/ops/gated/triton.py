"""Triton kernels of the gated activations, which gate is known when they are compiled."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

BYTES_PER_THREAD, WARPS = 16, 4


@triton.jit
def _logistic_argument(a, TANH: tl.constexpr):
    # (1 + tanh z) / 2 is the logistic function of 2 z = 2 sqrt(2 / pi) (a + 0.044715 a^3).
    if TANH:
        return a * (1.5957691216057308 + 0.07135481627260025 * a * a)
    else:
        return a


@triton.jit
def _slope(a, TANH: tl.constexpr):
    if TANH:
        return 1.5957691216057308 + 0.21406444881780073 * a * a
    else:
        return 1.0


@triton.jit
def gated_kernel(a_ptr, b_ptr, out_ptr, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    y = a * tl.sigmoid(_logistic_argument(a, TANH)) * b
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def gated_backward_kernel(a_ptr, b_ptr, dy_ptr, da_ptr, db_ptr, n, TANH: tl.constexpr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    dy = tl.load(dy_ptr + offsets, mask=mask).to(tl.float32)
    s = tl.sigmoid(_logistic_argument(a, TANH))
    g = a * s
    dg = s + g * (1.0 - s) * _slope(a, TANH)
    tl.store(da_ptr + offsets, (dy * b * dg).to(da_ptr.dtype.element_ty), mask=mask)
    tl.store(db_ptr + offsets, (dy * g).to(db_ptr.dtype.element_ty), mask=mask)


def _blocks(a_MN: torch.Tensor) -> tuple[int, tuple[int], int]:
    """Elements, grid and elements a program: 16 bytes of each input a thread."""
    n, size = a_MN.numel(), a_MN.element_size()
    block = 32 * WARPS * BYTES_PER_THREAD // size
    return n, (triton.cdiv(n, block),), block


def bind_gated(a_MN: torch.Tensor, b_MN: torch.Tensor, *, tanh: bool) -> Launch:
    """Raises BadField for tensors that are not contiguous."""
    require_contiguous(a_MN=a_MN, b_MN=b_MN)
    y_MN = torch.empty_like(a_MN)
    n, grid, block = _blocks(a_MN)

    def launch() -> torch.Tensor:
        gated_kernel[grid](a_MN, b_MN, y_MN, n, TANH=tanh, BLOCK=block, num_warps=WARPS)
        return y_MN

    return launch


def bind_gated_backward(a_MN: torch.Tensor, b_MN: torch.Tensor, dy_MN: torch.Tensor, *, tanh: bool) -> Launch:
    """Raises BadField for tensors that are not contiguous."""
    require_contiguous(a_MN=a_MN, b_MN=b_MN, dy_MN=dy_MN)
    da_MN, db_MN = torch.empty_like(a_MN), torch.empty_like(b_MN)
    n, grid, block = _blocks(a_MN)

    def launch() -> tuple[torch.Tensor, ...]:
        gated_backward_kernel[grid](a_MN, b_MN, dy_MN, da_MN, db_MN, n, TANH=tanh, BLOCK=block, num_warps=WARPS)
        return da_MN, db_MN

    return launch
