"""What `matmul` and its backward pass must compute, and how large errors may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import TF32_UNIT_ROUNDOFF
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

RULE = "|error| ≤ 1.01 u |c| + √K 2⁻²⁴ Σ|a||b|: added up in fp32, rounded once; with tf32 also 2⁻⁹ |c| + 3·2⁻¹⁰ √Σa²b²"


def reference(a_MK: Tensor, b_KN: Tensor) -> Tensors:
    """The product, in the dtype of the inputs (float64 in the gate)."""
    return (a_MK @ b_KN,)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """`product_bound` of the product."""
    a_MK, b_KN = inputs
    return (product_bound(problem, a_MK, b_KN, outputs[0]),)


def product_bound(problem: Problem, a_MK: Tensor, b_KN: Tensor, c_MN: Tensor) -> Tensor:
    """1.01 u |c| + √K 2^-24 Σ|a||b|: one rounding of the output, products added up in fp32.

    With tf32 also 2^-9 |c| + 3·2^-10 √Σa²b². A tensor core cuts the inputs off after 10 fraction bits, which may move
    each of them by 2^-10: as a whole that shrinks c by at most 2^-9, and what differs between the terms adds up like
    independent errors (one standard deviation is 0.3·2^-10 √Σa²b²; for up to two terms the sum is the worst case).
    The worst case of K terms, 2^-9 Σ|a||b|, would let bf16 inputs pass for tf32.
    """
    accumulated = (a_MK.abs() @ b_KN.abs()) * (a_MK.shape[1] ** 0.5 * FP32_ROUNDOFF)
    allowed: Tensor = accumulated + stored(c_MN, problem.dtype)
    if problem.compute == "tf32":
        cut = 2 * TF32_UNIT_ROUNDOFF
        allowed += c_MN.abs() * (2 * cut) + (a_MK.square() @ b_KN.square()).sqrt() * (3 * cut)
    return allowed


def backward_reference(a_MK: Tensor, b_KN: Tensor, dc_MN: Tensor) -> Tensors:
    """The gradients of both factors: dA = dC Bᵀ, dB = Aᵀ dC."""
    return dc_MN @ b_KN.t(), a_MK.t() @ dc_MN


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """`product_bound` of either product, in which N and M are the number of terms."""
    a_MK, b_KN, dc_MN = inputs
    da_MK, db_KN = outputs
    return product_bound(problem, dc_MN, b_KN.t(), da_MK), product_bound(problem, a_MK.t(), dc_MN, db_KN)
