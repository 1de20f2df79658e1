"""The Triton kernel of `batchnorm_relu` for small matrices, compiled for the size of the matrix."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.norm_activation.few_elements import few_shape, is_few
from kernelviz.ops.norm_activation.triton_batchnorm import bind_batchnorm, factor_and_summand


@triton.jit
def batchnorm_relu_few_kernel(
    x_ptr,
    mean_ptr,
    variance_ptr,
    w_ptr,
    b_ptr,
    y_ptr,
    SIZE: tl.constexpr,
    N: tl.constexpr,
    EPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    element = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = element < SIZE
    column = element % N
    # Each channel is read by many programs, and again by the next call: with evict_last, L2 evicts other lines first. Inductor's
    # kernels have the same hint. What it saves was not measured.
    # The channels of all elements exist, also of those behind the last one, whose results are not stored.
    x = tl.load(x_ptr + element, mask=inside).to(tl.float32)
    mean = tl.load(mean_ptr + column, eviction_policy="evict_last").to(tl.float32)
    variance = tl.load(variance_ptr + column, eviction_policy="evict_last").to(tl.float32)
    w = tl.load(w_ptr + column, eviction_policy="evict_last").to(tl.float32)
    b = tl.load(b_ptr + column, eviction_policy="evict_last").to(tl.float32)
    factor, summand = factor_and_summand(mean, variance, w, b, EPS)
    y = tl.maximum(x * factor + summand, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(y_ptr + element, y.to(y_ptr.dtype.element_ty), mask=inside)


def bind_few_or_rows(
    x_MN: torch.Tensor,
    mean_N: torch.Tensor,
    variance_N: torch.Tensor,
    w_N: torch.Tensor,
    b_N: torch.Tensor,
    *,
    eps: float,
) -> Launch:
    """The matrix as one vector where it is small, else `bind_batchnorm`; BadField for tensors that are not contiguous."""
    m, n = x_MN.shape
    size = m * n
    if not is_few(m, n):
        return bind_batchnorm(x_MN, mean_N, variance_N, w_N, b_N, eps=eps, relu=True)
    require_contiguous(x_MN=x_MN, mean_N=mean_N, variance_N=variance_N, w_N=w_N, b_N=b_N)
    y_MN = torch.empty_like(x_MN)
    block, warps = few_shape(size, n, x_MN.element_size())
    grid = (triton.cdiv(size, block),)

    def launch() -> torch.Tensor:
        batchnorm_relu_few_kernel[grid](
            x_MN, mean_N, variance_N, w_N, b_N, y_MN, size, n, eps, BLOCK=block, num_warps=warps
        )
        return y_MN

    return launch
