"""What a linear layer with an activation computes, and how much a result may differ from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import TF32_UNIT_ROUNDOFF
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Bound
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

Function = Callable[["Tensor"], "Tensor"]


def linear(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Tensor:
    """x wᵀ + b."""
    return x_MK @ w_NK.t() + b_N


def linear_error(problem: Problem, x_MK: Tensor, w_NK: Tensor, b_N: Tensor, z_MN: Tensor) -> Tensor:
    """How far a stored z may be from z = x wᵀ + b: the error e of `bound_of`."""
    magnitude_MN = x_MK.abs() @ w_NK.abs().t()
    error_MN: Tensor = magnitude_MN * (problem.sizes["k"] ** 0.5 * FP32_ROUNDOFF)
    product_MN = z_MN - b_N
    error_MN += 2 * FP32_ROUNDOFF * (z_MN.abs() + b_N.abs())
    error_MN += stored(z_MN, problem.dtype) + stored(product_MN, problem.dtype)
    if problem.compute == "tf32":
        cut = 2 * TF32_UNIT_ROUNDOFF
        error_MN += product_MN.abs() * (2 * cut) + (x_MK.square() @ w_NK.square().t()).sqrt() * (3 * cut)
    return error_MN


def bound_of(function: Function, slack: Callable[[Tensor], Tensor]) -> Bound:
    """The bound for an activation. `slack`: the error of the activation itself in fp32, from z, in units of 2^-24."""

    def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
        """The largest change of f over z ± e, slack(z) 2^-24, and one rounding of the result to its format.

        e = √K 2^-24 Σ|x||w| + 2^-23 (|z| + |b|) + u (|z| + |z - b|): the products are added up in fp32 (as in matmul), then the
        bias; and a layer that is not fused stores the product z - b, and then z, before the activation reads it. With tf32 also
        the two terms of matmul.
        """
        x_MK, w_NK, b_N = inputs
        z_MN = linear(x_MK, w_NK, b_N)
        y_MN = outputs[0]
        error_MN = linear_error(problem, x_MK, w_NK, b_N, z_MN)
        up_MN = (function(z_MN + error_MN) - y_MN).abs()
        down_MN = (function(z_MN - error_MN) - y_MN).abs()
        return (up_MN.maximum(down_MN) + slack(z_MN) * FP32_ROUNDOFF + stored(y_MN, problem.dtype),)

    return bound
