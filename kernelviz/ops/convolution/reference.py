"""What `conv2d` and `conv_bias_relu` must compute, and how large their errors may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, added_in_fp32, stored
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.convolution.geometry import geometry_of

if TYPE_CHECKING:
    from torch import Tensor

RULE = "|error| ≤ 1.01 u |y| + max(√T, min(T, 8)) 2⁻²⁴ Σ|x||w|, T = C R²: added up in fp32, rounded once"
RELU_RULE = (
    "|error| ≤ max |max(z ± e, 0) − y| + 1.01 u |y|, z = x ∗ w + b, T = C R², e = max(√T, min(T, 8)) 2⁻²⁴ Σ|x||w| + "
    "2⁻²³ (|z| + |b|) + u (|z| + |z − b|)"
)


def convolved(x_NHWC: Tensor, w_KRRC: Tensor, s: int) -> Tensor:
    """x ∗ w of shape (N, P, Q, K), in the dtype of the inputs: the sum of one matrix product for each tap of the filter.

    A tap sees each image moved by some pixels, in steps of the stride. Pixels outside an image are zeros. No more than a copy
    of the padded images and of what one tap sees is in memory.
    """
    import torch

    g = geometry_of(x_NHWC, w_KRRC, s)
    padded_NHWC = torch.nn.functional.pad(x_NHWC, (0, 0, g.pad, g.pad, g.pad, g.pad))
    y_NPQK = x_NHWC.new_zeros((g.n, g.p, g.q, g.k))
    for i in range(g.r):
        for j in range(g.r):
            rows, columns = (slice(begin, begin + (count - 1) * s + 1, s) for begin, count in ((i, g.p), (j, g.q)))
            seen_NPQC = padded_NHWC[:, rows, columns]
            y_NPQK += seen_NPQC @ w_KRRC[:, i, j].T
    return y_NPQK


def reference(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Tensors:
    """The convolution, in the dtype of the inputs (float64 in the gate)."""
    return (convolved(x_NHWC, w_KRRC, s),)


def relu_reference(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Tensors:
    """max(x ∗ w + b, 0); NaN stays NaN."""
    return ((convolved(x_NHWC, w_KRRC, s) + b_K).relu(),)


def _accumulated(problem: Problem, x_NHWC: Tensor, w_KRRC: Tensor) -> Tensor:
    """What adding up in fp32 may change: max(√T, min(T, 8)) 2^-24 Σ|x||w|.

    T = C R² products are added up also where the filter lies on padding, whose products are exact zeros.
    """
    _, r, _, c = w_KRRC.shape
    magnitude_NPQK = convolved(x_NHWC.abs(), w_KRRC.abs(), problem.sizes["s"])
    return magnitude_NPQK * added_in_fp32(c * r * r)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |y| + max(√T, min(T, 8)) 2^-24 Σ|x||w|: one rounding of the output, and T = C R² products added up in fp32."""
    x_NHWC, w_KRRC = inputs
    return (_accumulated(problem, x_NHWC, w_KRRC) + stored(outputs[0], problem.dtype),)


def relu_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The largest change of max(z, 0) over z ± e, and one rounding of the result.

    e = max(√T, min(T, 8)) 2^-24 Σ|x||w| + 2^-23 (|z| + |b|) + u (|z| + |z - b|): T = C R² products are added up in fp32,
    then the bias (an addition in fp32 rounds z and what it adds). Where the steps are not fused, the convolution z - b is stored
    in the format of the problem, and then z, before relu reads it.
    """
    x_NHWC, w_KRRC, b_K = inputs
    (y_NPQK,) = outputs
    z_NPQK = convolved(x_NHWC, w_KRRC, problem.sizes["s"]) + b_K
    error_NPQK = _accumulated(problem, x_NHWC, w_KRRC)
    error_NPQK += 2 * FP32_ROUNDOFF * (z_NPQK.abs() + b_K.abs())
    error_NPQK += stored(z_NPQK, problem.dtype) + stored(z_NPQK - b_K, problem.dtype)
    up_NPQK = ((z_NPQK + error_NPQK).relu() - y_NPQK).abs()
    down_NPQK = ((z_NPQK - error_NPQK).relu() - y_NPQK).abs()
    return (up_NPQK.maximum(down_NPQK) + stored(y_NPQK, problem.dtype),)
