"""What `norm_activation` and `batchnorm_relu` compute, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""torch's default in both normalisations, and GPT-2's `layer_norm_epsilon`."""


def layer_normalised(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensor:
    """(x - mean) / sqrt(var + eps) * w + b along each row."""
    away_MN = x_MN - x_MN.mean(-1, keepdim=True)
    return away_MN * (away_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N + b_N


def layernorm_gelu_reference(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensors:
    """gelu((x - mean) / sqrt(var + eps) * w + b) by erf along each row, in the dtype of the inputs (float64 in the gate)."""
    from torch.nn import functional

    return (functional.gelu(layer_normalised(x_MN, w_N, b_N)),)


def layernorm_gelu_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The change of gelu over the error of z = layernorm(x), 8 |z| 2^-24 for the normal distribution, and one rounding.

    z errs by |w| (s (r mean|x| + |x̂| (1 + (mean(x²) + μ²) / v)) + 4 r (|x| + |μ|) 2^-24) + 2 (|x̂ w| + |b|) 2^-24 in fp32,
    s = (8 + √N / 2) 2^-24, v = var + eps, r = 1 / √v: the mean errs by s mean|x|, the variance by s var or, where it is
    computed as E[x²] - μ², by s (mean(x²) + μ²). It also errs by u |z|, because a separate normalisation stores z before gelu
    reads it. For the distribution: erf errs by up to 2.5 · 2^-24 if it is the polynomial of Abramowitz and Stegun 7.1.26, its
    argument by 1.5 · 2^-24 of itself, and 1 + erf(z / √2) cancels for negative z.
    """
    from torch.nn import functional

    x_MN, w_N, b_N = inputs
    mean_M1 = x_MN.mean(-1, keepdim=True)
    power_M1 = x_MN.square().mean(-1, keepdim=True) + mean_M1.square()
    variance_M1 = (x_MN - mean_M1).square().mean(-1, keepdim=True) + EPS
    scale_M1 = variance_M1.rsqrt()
    hat_MN = (x_MN - mean_M1) * scale_M1
    s = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    error_MN = s * (scale_M1 * x_MN.abs().mean(-1, keepdim=True) + hat_MN.abs() * (1 + power_M1 / variance_M1))
    error_MN = error_MN + 4 * FP32_ROUNDOFF * scale_M1 * (x_MN.abs() + mean_M1.abs())
    z_MN = hat_MN * w_N + b_N
    z_error_MN = error_MN * w_N.abs() + 2 * FP32_ROUNDOFF * ((hat_MN * w_N).abs() + b_N.abs())
    z_error_MN = z_error_MN + stored(z_MN, problem.dtype)
    y_MN = outputs[0]
    up_MN = (functional.gelu(z_MN + z_error_MN) - y_MN).abs()
    down_MN = (functional.gelu(z_MN - z_error_MN) - y_MN).abs()
    return (up_MN.maximum(down_MN) + 8 * FP32_ROUNDOFF * z_MN.abs() + stored(y_MN, problem.dtype),)


def channel_scale(variance_N: Tensor, w_N: Tensor) -> Tensor:
    """w / √(|variance| + eps). A running variance is never negative, but here it is random like any other input."""
    return (variance_N.abs() + EPS).rsqrt() * w_N


def batchnorm_relu_reference(x_MN: Tensor, mean_N: Tensor, variance_N: Tensor, w_N: Tensor, b_N: Tensor) -> Tensors:
    """max((x - mean) / sqrt(|variance| + eps) * w + b, 0), in the dtype of the inputs (float64 in the gate)."""
    return (((x_MN - mean_N) * channel_scale(variance_N, w_N) + b_N).relu(),)


def batchnorm_relu_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """8 ((|x| + |mean|) a + |b|) 2^-24, a = |w| / √(|variance| + eps), in fp32, and two roundings to the output's format.

    Eight units: the approximate reciprocal root (2), eps, the product with w, and either x - mean, its product with a and the sum
    with b, or the product x a and the sum with b - mean a. Two roundings: a separate normalisation stores what relu reads, and
    relu makes no error larger.
    """
    x_MN, mean_N, variance_N, w_N, b_N = inputs
    a_N = channel_scale(variance_N, w_N)
    z_MN = (x_MN - mean_N) * a_N + b_N
    sizes_MN = (x_MN.abs() + mean_N.abs()) * a_N.abs() + b_N.abs()
    return (8 * FP32_ROUNDOFF * sizes_MN + stored(z_MN, problem.dtype, times=2),)
