"""What the backward passes of the gated activations must compute, and how large errors of both passes may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


ROOT_2_OVER_PI = 0.7978845608028654


CUBIC = 0.044715


def _logistic(a_MN: Tensor, tanh: bool) -> tuple[Tensor, Tensor, Tensor]:
    """w, σ(w) and dw/da of the gate g(a) = a σ(w(a)): w = a for silu, 2 z for gelu by tanh, since (1 + tanh z) / 2 = σ(2 z)."""
    if not tanh:
        return a_MN, a_MN.sigmoid(), a_MN.new_ones(()).expand_as(a_MN)
    square_MN = a_MN.square()
    w_MN = 2 * ROOT_2_OVER_PI * a_MN * (1 + CUBIC * square_MN)
    return w_MN, w_MN.sigmoid(), 2 * ROOT_2_OVER_PI * (1 + 3 * CUBIC * square_MN)


def _logistic_error(w_MN: Tensor, s_MN: Tensor, tanh: bool) -> Tensor:
    """What σ(w) may err by in fp32; see the bounds."""
    exponent_MN = 3 * w_MN.abs() * s_MN * (1 - s_MN)
    return (exponent_MN + (6 if tanh else 8 * s_MN)) * FP32_ROUNDOFF + 2.0**-126


def bound_of_forward(problem: Problem, inputs: Tensors, outputs: Tensors, tanh: bool) -> Tensors:
    """|b| (|a| E + 2 · 2^-24 |g| + u |g|) + u |y|, E being the error of σ(w) in fp32: the gate may be stored before the product.

    w is a sum of products, so it errs by up to 3 · 2^-24 of itself, and σ by σ (1 - σ) times that. silu's σ has another
    8 · 2^-24 of itself for the approximate power (2^-22, PTX ISA, ex2.approx), the sum and the reciprocal. (1 + tanh z) / 2
    cancels for negative z where tanh itself is computed (2 units in the last place of 1, the sum, the halves): 6 · 2^-24.
    """
    a_MN, b_MN = inputs
    w_MN, s_MN, _ = _logistic(a_MN, tanh)
    g_MN = a_MN * s_MN
    gate_MN = a_MN.abs() * _logistic_error(w_MN, s_MN, tanh) + 2 * FP32_ROUNDOFF * g_MN.abs()
    return (b_MN.abs() * (gate_MN + stored(g_MN, problem.dtype)) + stored(outputs[0], problem.dtype),)


def reference_of_backward(a_MN: Tensor, b_MN: Tensor, dy_MN: Tensor, tanh: bool) -> Tensors:
    """da = dy b (σ + a σ (1 - σ) dw/da), db = dy a σ, with σ of w(a)."""
    _, s_MN, slope_MN = _logistic(a_MN, tanh)
    return dy_MN * b_MN * (s_MN + a_MN * s_MN * (1 - s_MN) * slope_MN), dy_MN * a_MN * s_MN


def bound_of_backward(problem: Problem, inputs: Tensors, outputs: Tensors, tanh: bool) -> Tensors:
    """As `bound_of_forward`: an error E of σ, one of the gate's slope of E (1 + |a| w') + 4 · 2^-24 |a| w', two roundings each.

    1 - σ (or 1 - tanh²) cancels for large a: it errs by a unit of 1, whatever it is itself, and |a| w' multiplies it. Products
    that torch stores: dy b ahead of da, the gate ahead of db.
    """
    a_MN, b_MN, dy_MN = inputs
    da_MN, db_MN = outputs
    w_MN, s_MN, slope_MN = _logistic(a_MN, tanh)
    error_MN = _logistic_error(w_MN, s_MN, tanh)
    g_MN, reach_MN = a_MN * s_MN, a_MN.abs() * slope_MN
    dg_MN = s_MN + g_MN * (1 - s_MN) * slope_MN
    dg_error_MN = error_MN * (1 + reach_MN) + 4 * FP32_ROUNDOFF * (reach_MN + dg_MN.abs())
    g_error_MN = a_MN.abs() * error_MN + 2 * FP32_ROUNDOFF * g_MN.abs()
    product_MN = dy_MN * b_MN
    return (
        product_MN.abs() * dg_error_MN + stored(product_MN, problem.dtype) * dg_MN.abs() + stored(da_MN, problem.dtype),
        dy_MN.abs() * (g_error_MN + stored(g_MN, problem.dtype)) + stored(db_MN, problem.dtype),
    )
