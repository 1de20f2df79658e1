"""What `softmax` and its backward pass must compute, and how large errors may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, nearest_zero, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """y (1.01 u + (16 + √N + 2.5 (d + D)) 2^-24): everything in fp32, one rounding to the output's format.

    d = max - x of the element. Its subtraction, log2 e (a quarter of a unit) and the product with it are rounded, each in
    proportion to d, and an error of the exponent is a relative one of the power: 2.25 d 2^-24. The sum errs by the mean of
    that over its terms, weighted by y: D = Σ y d, which is at most ln N. 16 · 2^-24 pay for the approximate power (2^-22,
    PTX ISA, ex2.approx), in the element and in the sum, the division (2 units in the last place) and products of these.
    √N 2^-24 is what a sum of N positive terms errs by, as in rmsnorm; in sums made of blocks, whose own error is far smaller,
    it pays for the rescaling to each new maximum.
    """
    x_MN, y_MN = inputs[0], outputs[0]
    # Of an entry whose y is 0, one that is masked with -inf say, only the smallest numbers count.
    depth_MN = (x_MN.amax(-1, keepdim=True) - x_MN).where(y_MN > 0, 0.0)
    mean_depth_M1 = (y_MN * depth_MN).sum(-1, keepdim=True)
    units_MN = 16 + problem.sizes["n"] ** 0.5 + 2.5 * (depth_MN + mean_depth_M1)
    return (y_MN * units_MN * FP32_ROUNDOFF + stored(y_MN, problem.dtype),)


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """y' (|e| |dy - D| + |D' - D|), and one rounding: y' = y + e is what the forward pass stored, within its own bound.

    D' = Σ y' dy differs from D by at most Σ |e dy| and what a sum in fp32 errs by, (4 + √N) 2^-24 Σ y |dy|; and by u Σ y |dy|,
    since Liger and torch round the products to the format of the inputs. torch adds them in fp32; Liger adds them in that
    format, in pairs, pairs of pairs and so on, where the two last sums err most: u Σ y |dy| each. torch subtracts D y'
    from the rounded product: u y |dy|. Liger rounds dy - D: u y (|dy| + |D|). 4 · 2^-24 y (|dy| + |D|) pay for the
    subtraction and the product in fp32. Products near zero err by the smallest numbers of the format instead, each of the N
    and the one of the element.

    √N holds where rounding errors go either way. Equal terms are all rounded the same way until the sum doubles, so a sum in
    eight lanes, torch's on a CPU with AVX2, errs by up to N / 8 units (576 of 4096 were seen at N = 32771).
    """
    x_MN, dy_MN = inputs
    y_MN = x_MN.softmax(-1)
    (e_MN,) = bound(problem, (x_MN,), (y_MN,))
    mean_M1 = (y_MN * dy_MN).sum(-1, keepdim=True)
    unit = 1.01 * dtype_named(problem.dtype).unit_roundoff
    n = problem.sizes["n"]
    additions = max(n**0.5, n / 8) if problem.data == "one_value" else n**0.5
    units = (4 + additions) * FP32_ROUNDOFF + unit * (1 + min(2, (n - 1).bit_length()))
    smallest = nearest_zero(problem.dtype)
    mean_error_M1 = ((e_MN + units * y_MN) * dy_MN.abs() + smallest).sum(-1, keepdim=True)
    largest_MN = y_MN + e_MN
    error_MN = e_MN * (dy_MN - mean_M1).abs() + largest_MN * mean_error_M1
    error_MN += largest_MN * (dy_MN.abs() + mean_M1.abs()) * (4 * FP32_ROUNDOFF + unit)
    return (error_MN * (1 + 2.0**-8) + smallest + stored(outputs[0], problem.dtype),)


def backward_reference(x_MN: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = y (dy - Σ y dy) along each row."""
    y_MN = x_MN.softmax(-1)
    return (y_MN * (dy_MN - (y_MN * dy_MN).sum(-1, keepdim=True)),)


def reference(x_MN: Tensor) -> Tensors:
    """exp(x - max) / Σ exp(x - max) along each row, in the dtype of the input (float64 in the gate)."""
    return (x_MN.softmax(-1),)
