"""How large the error of each activation may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    pass


def relu_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """Zero: the output is the input or 0."""
    return (outputs[0].new_zeros(()).expand_as(outputs[0]),)


def sigmoid_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """y (8 + 2 |x| (1 - y)) 2^-24 in fp32, and one rounding to the output's format.

    The exponent x log2 e is rounded (and log2 e itself), which is up to 1.1 |x| 2^-24 of the power, and the power's share of
    1 + exp(-x) is 1 - y. 8 pay for the approximate power (2^-22, PTX ISA, ex2.approx), the sum, and the reciprocal.
    """
    x_N, y_N = inputs[0], outputs[0]
    return (y_N * (8 + 2 * x_N.abs() * (1 - y_N)) * FP32_ROUNDOFF + stored(y_N, problem.dtype),)


def silu_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """|x| times the error of the sigmoid in fp32, and one rounding to the output's format.

    Below 2^-126 a sigmoid in fp32 may be flushed to zero, and x with it.
    """
    x_N, y_N = inputs[0], outputs[0]
    s_N = x_N.sigmoid()
    units_N = 8 + 2 * x_N.abs() * (1 - s_N)
    return (y_N.abs() * units_N * FP32_ROUNDOFF + x_N.abs() * 2.0**-126 + stored(y_N, problem.dtype),)


def gelu_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """8 |x| 2^-24 for the distribution in fp32, and one rounding to the output's format.

    For negative x, 1 + erf(x / √2) cancels: the error of erf, a number near -1, stays as it is while the sum becomes small. erf
    errs by up to 2.5 · 2^-24 where it is the polynomial of Abramowitz and Stegun 7.1.26 (1.5e-7; so torch on a CPU), its
    argument by 1.5 · 2^-24 of itself, the sum and the products by half a unit each. In 16-bit formats this is nothing beside the
    rounding down to x = -4, where the approximation by tanh is off by a third of y.
    """
    x_N, y_N = inputs[0], outputs[0]
    return (x_N.abs() * (8 * FP32_ROUNDOFF) + stored(y_N, problem.dtype),)
