"""What `scaled_matmul` and `block_scaled_matmul` must compute, and how large their errors may be.

Hopper's tensor core adds up products of 8-bit floats with fewer bits than fp32: it shifts the sum so far and the 32 products of
an instruction to the largest exponent among them, and cuts each off after 13 fraction bits (DeepSeek-V3 technical report, section
3.3.2: "around 14 bits"). So one instruction changes a sum s by up to 33 cuts of 2^-13 |s|, in three ways:

- What the products lose has random signs if the products have. With R = √Σ(a·b)², which is what such a sum of K products amounts
  to, √K cuts of up to 2^-13 R add up to 2^-13 √K R.
- The sum so far is always cut towards zero, by half a cut on average: K/32 instructions lose 2^-13 |c| K/64.
- If the products have one sign, what they lose has one sign too: K half cuts, K/2 · 2^-13 |c|. With Σ|a·b| = T, the share of the
  products whose signs agree is |c| / T, so this is K/2 · 2^-13 c² / T. For products of random signs it is nearly nothing.

A simulation of that arithmetic (tests/ops/test_matmul_fp8.py) reaches 0.4 to 0.8 √K · 2^-13 (|c| + R) on normal data of K = 32 to
8192, and 1.5 times √K are allowed. If every 128 of K are added in fp32, K is 128 in all of this, because the errors of the
parts add up as the parts themselves do. A product of K terms that leaves out 128 of them is wrong by √(128/K) R on average.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

BLOCK = 128
"""Terms of K that share a scale, or that the tensor core adds up before fp32 does."""
FAST, PRECISE = "fast_accumulation", "fp32_accumulation"
"""The tensor core adds up all of K, or only 128 of K at a time, which are then added in fp32 (or all of K in fp32)."""
CUT = 2.0**-13


def reference(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Tensors:
    """The product of A and Bᵀ, times both scales."""
    return ((a_MK @ b_NK.T) * (a_scale * b_scale),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """`accumulated`, and the rounding to bf16."""
    a_MK, b_NK, a_scale, b_scale = inputs
    return (_bound(a_MK * (a_scale * b_scale), b_NK, outputs[0], problem.compute == FAST),)


def block_reference(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Tensors:
    """The product of the dequantised matrices. Scales: (K / 128, M) of A and (N / 128, K / 128) of B, rounded up."""
    a_MK, b_NK = dequantised(a_MK, b_NK, a_scale, b_scale)
    return (a_MK @ b_NK.T,)


def block_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """As of `scaled_matmul` with sums of 128 terms, because only those can be scaled."""
    a_MK, b_NK = dequantised(*inputs)
    return (_bound(a_MK, b_NK, outputs[0], fast=False),)


def dequantised(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> tuple[Tensor, Tensor]:
    """Both matrices times their scales, in the dtype of the scales."""
    k, n = a_MK.shape[1], b_NK.shape[0]
    a_scale_MK = a_scale.T.repeat_interleave(BLOCK, 1)[:, :k]
    b_scale_NK = b_scale.repeat_interleave(BLOCK, 0)[:n].repeat_interleave(BLOCK, 1)[:, :k]
    return a_MK.to(a_scale.dtype) * a_scale_MK, b_NK.to(b_scale.dtype) * b_scale_NK


def _bound(a_MK: Tensor, b_NK: Tensor, c_MN: Tensor, fast: bool) -> Tensor:
    k = a_MK.shape[1]
    sum_of_sizes = a_MK.abs() @ b_NK.abs().T
    root_of_squares = (a_MK.square() @ b_NK.square().T).sqrt()
    in_fp32 = sum_of_sizes * (float(k) ** 0.5 * FP32_ROUNDOFF)
    by_tensor_core = accumulated(c_MN, sum_of_sizes, root_of_squares, k if fast else min(k, BLOCK))
    allowed: Tensor = by_tensor_core + in_fp32 + stored(c_MN, "bf16")
    return allowed


def accumulated(c_MN: Tensor, sum_of_sizes: Tensor, root_of_squares: Tensor, k: int) -> Tensor:
    """The largest |error| of sums whose `k` terms at a time a tensor core adds up with 13 fraction bits."""
    size = c_MN.abs()
    of_one_sign = size.square() / sum_of_sizes.clamp_min(2.0**-126)
    random = (size + root_of_squares) * (1.5 * float(k) ** 0.5)
    cuts: Tensor = random + size * (k / 64) + of_one_sign * (k / 2)
    return cuts * CUT
