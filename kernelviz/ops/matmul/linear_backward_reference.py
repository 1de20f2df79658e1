"""What the backward pass of a linear layer with an activation must compute, and how large its errors may be."""

from __future__ import annotations

from collections.abc import Callable
from math import pi, sqrt
from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Bound
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, added_in_fp32, stored
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.matmul.linear_reference import Function, linear, linear_error
from kernelviz.ops.matmul.reference import product_bound

if TYPE_CHECKING:
    from torch import Tensor


def relu_derivative(z: Tensor) -> Tensor:
    """1 where z is positive, else 0."""
    return (z > 0).to(z.dtype)


def gelu_derivative(z: Tensor) -> Tensor:
    """P(z) + z p(z), with P the normal distribution and p its density."""
    return (1 + (z / sqrt(2)).erf()) / 2 + z * (-z.square() / 2).exp() / sqrt(2 * pi)


def silu_derivative(z: Tensor) -> Tensor:
    """σ(z) (1 + z (1 - σ(z))), with σ the logistic function."""
    s = z.sigmoid()
    return s * (1 + z * (1 - s))


def backward_reference_of(derivative: Function) -> Callable[..., Tensors]:
    """dx = dz w, dw = dzᵀ x, db = Σ dz over the rows, with dz = dy f'(z), z = x wᵀ + b."""

    def reference(x_MK: Tensor, w_NK: Tensor, b_N: Tensor, dy_MN: Tensor) -> Tensors:
        dz_MN = dy_MN * derivative(linear(x_MK, w_NK, b_N))
        return dz_MN @ w_NK, dz_MN.t() @ x_MK, dz_MN.sum(0)

    return reference


def backward_bound_of(derivative: Function) -> Bound:
    """The bound for an activation with this derivative."""

    def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
        """Those of the products dz w and dzᵀ x and of the sum of dz, and 3 √Σ(E v)² for the error E of each dz, v what it meets.

        E = |dy| (max |f'(z ± e) - f'(z)| + (8 + 4 |z|) 2^-24) + 1.01 u |dz|: e is the error of the z that the forward pass
        stored, as in the bound of that pass, and (8 + 4 |z|) 2^-24 is that of f' in fp32; dz is rounded before the products. The
        errors of different dz are independent, so they add up like random numbers; of up to nine terms the worst case is allowed.
        """
        x_MK, w_NK, b_N, dy_MN = inputs
        dx_MK, dw_NK, db_N = outputs
        z_MN = linear(x_MK, w_NK, b_N)
        e_MN = linear_error(problem, x_MK, w_NK, b_N, z_MN)
        f_MN = derivative(z_MN)
        dz_MN = dy_MN * f_MN
        change_MN = (derivative(z_MN + e_MN) - f_MN).abs().maximum((derivative(z_MN - e_MN) - f_MN).abs())
        change_MN += (8 + 4 * z_MN.abs()) * FP32_ROUNDOFF
        squares_MN = (dy_MN.abs() * change_MN + stored(dz_MN, problem.dtype)).square()
        dx_error = product_bound(problem, dz_MN, w_NK, dx_MK) + 3 * (squares_MN @ w_NK.square()).sqrt()
        dw_error = product_bound(problem, dz_MN.t(), x_MK, dw_NK) + 3 * (squares_MN.t() @ x_MK.square()).sqrt()
        added_N = dz_MN.abs().sum(0) * added_in_fp32(dz_MN.shape[0])
        return dx_error, dw_error, added_N + stored(db_N, problem.dtype) + 3 * squares_MN.sum(0).sqrt()

    return bound


BACKWARD_RULE = (
    "of dx and dw as in matmul, with N and M terms, of db max(√M, min(M, 8)) 2⁻²⁴ Σ|dz| + 1.01 u |db|; "
    "and 3 √Σ(E v)² with what each dz meets, "
    "E = |dy| (max |f′(z ± e) − f′(z)| + (8 + 4 |z|) 2⁻²⁴) + 1.01 u |dz|, e as in the forward pass"
)
