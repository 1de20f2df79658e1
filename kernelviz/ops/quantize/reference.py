"""What the quantising ops compute, in float64, what of a result is compared with it, and how much it may differ."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.op import Bound
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

SMALLEST = 1e-12
"""The largest |x| of a row counts as at least this, so that the scale of a row of zeros is not 0. (The smallest fp16 number is
6e-8.)"""
EPS = 1e-5
"""Llama 3's `rms_norm_eps`."""


def largest(target: str) -> float:
    """The largest number of the format, to which the largest |x| of a row is mapped.

    >>> largest("fp8"), largest("int8")
    (448.0, 127.0)
    """
    return dtype_named(target).largest


def half_step(value: Tensor, target: str) -> Tensor:
    """Half the distance between the format's two numbers around each value, the largest error of rounding to nearest.

    e4m3 has 3 fraction bits and 2^-6 as its smallest normal number: steps of 2^(e - 3) from 2^e on, of 2^-9 below 2^-6.
    """
    import torch

    if target == "int8":
        return torch.full_like(value, 0.5)
    _, exponent = torch.frexp(value)  # |value| in [2^(exponent - 1), 2^exponent)
    return torch.ldexp(torch.ones_like(value), exponent.clamp(min=-5) - 5)


def scale_of(x_MN: Tensor, target: str) -> Tensor:
    """Each row's largest |x| over the format's largest number."""
    return x_MN.abs().amax(-1).clamp(min=SMALLEST) / largest(target)


def quantised_bound(x_MN: Tensor, scale_M: Tensor, target: str) -> Tensor:
    """The largest |q · scale - x|: half a step of the format, and 8 |x| 2^-24 for arithmetic in fp32.

    The scale, its reciprocal and the product of x with it are rounded. Each rounding changes a value by 2^-24 of itself (the
    approximate reciprocal by two units), so it may also decide a tie. The product q · scale that is compared is rounded, too.
    """
    value_MN = x_MN / scale_M[:, None]
    return half_step(value_MN, target) * scale_M[:, None] + x_MN.abs() * (8 * FP32_ROUNDOFF)


def dequantised(q_MN: Tensor, scale_M: Tensor) -> Tensor:
    """q · scale in fp32."""
    return q_MN.float().mul_(scale_M[:, None])


def compared(inputs: Tensors, outputs: Tensors) -> Tensors:
    """The numbers that the 8-bit numbers represent, and the scales."""
    q_MN, scale_M = outputs
    return dequantised(q_MN, scale_M), scale_M


def rows_reference(target: str) -> Callable[[Tensor], Tensors]:
    """The reference of `quantize_fp8` or `quantize_int8`: x itself, which q · scale must represent, and the scales."""
    return lambda x_MN: (x_MN, scale_of(x_MN, target))


def rows_bound(target: str) -> Bound:
    """The bound of `quantize_fp8` or `quantize_int8`: `quantised_bound`, and 4 · 2^-24 of itself for the scale."""

    def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
        x_MN, scale_M = outputs
        return quantised_bound(x_MN, scale_M, target), scale_M * (4 * FP32_ROUNDOFF)

    bound.__doc__ = quantised_bound.__doc__
    return bound


def rmsnorm_reference(x_MN: Tensor, w_N: Tensor) -> Tensors:
    """y = x / sqrt(mean(x²) + eps) * w, which q · scale must represent, and max|y| / 448 of each row."""
    y_MN = x_MN * (x_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N
    return y_MN, scale_of(y_MN, "fp8")


def rmsnorm_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The error of y, |y| (2 u + (8 + √N / 2) 2^-24) as in rmsnorm, and half a step of the format as in quantize_fp8.

    y may be rounded twice to the format of x before it is quantised, as it is by two separate ops. The scale has the relative
    error of the largest |y|.
    """
    y_MN, scale_M = outputs
    statistics = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    error_MN = y_MN.abs() * statistics + stored(y_MN, problem.dtype, times=2)
    largest_M = y_MN.abs().amax(-1)
    relative_M = statistics + stored(largest_M, problem.dtype, times=2) / largest_M.clamp(min=2.0**-126)
    return error_MN + quantised_bound(y_MN, scale_M, "fp8"), scale_M * (relative_M + 4 * FP32_ROUNDOFF)
