"""What the three normalisations and their backward passes compute, in float64, and how much a result may differ from it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, nearest_zero, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

EPS = 1e-5
"""Llama 3's `rms_norm_eps`, GPT-2's `layer_norm_epsilon`, and torch's default in layer_norm."""


@dataclass(frozen=True, slots=True)
class Normalised:
    """Rows x̂ = (x - mean) scale in float64, and their largest error in fp32 arithmetic.

    `scale_error` is relative, `error_MN` absolute.
    """

    hat_MN: Tensor
    scale_M1: Tensor
    scale_error: Tensor | float
    error_MN: Tensor


def root_mean_square(x_MN: Tensor, eps: float) -> Normalised:
    """x̂ = x / √(mean(x²) + eps), whose error is (8 + √N / 2) 2^-24 of itself.

    The squares are positive, so their sum in fp32 errs by √N 2^-24 of itself, and the root halves that. 8 · 2^-24 cover the
    square, the mean, eps, the approximate reciprocal root (2 units) and the products.
    """
    scale_M1 = (x_MN.square().mean(-1, keepdim=True) + eps).rsqrt()
    hat_MN = x_MN * scale_M1
    error = (8 + x_MN.shape[-1] ** 0.5 / 2) * FP32_ROUNDOFF
    return Normalised(hat_MN, scale_M1, error, hat_MN.abs() * error)


def standard_score(x_MN: Tensor, eps: float) -> Normalised:
    """x̂ = (x - μ) / √(var + eps) with s = (8 + √N / 2) 2^-24 as above, v = var + eps, r = 1 / √v:

    |error| ≤ s (r mean|x| + |x̂| (mean(x²) + μ²) / v) + 4 r (|x| + |μ|) 2^-24.

    The mean errs by s mean|x|. The variance errs by s var where it is summed from x - μ or by Welford's recurrence, and by
    s (mean(x²) + μ²) where it is E[x²] - μ². The bound allows both; they are equal where μ is small compared with the
    deviation. The last term: x - μ, or x r - μ r, rounded.
    """
    mean_M1 = x_MN.mean(-1, keepdim=True)
    power_M1 = x_MN.square().mean(-1, keepdim=True) + mean_M1.square()
    variance_M1 = (x_MN - mean_M1).square().mean(-1, keepdim=True) + eps
    scale_M1 = variance_M1.rsqrt()
    hat_MN = (x_MN - mean_M1) * scale_M1
    s = (8 + x_MN.shape[-1] ** 0.5 / 2) * FP32_ROUNDOFF
    scale_error_M1 = s * (1 + power_M1 / variance_M1)
    error_MN = (
        s * scale_M1 * x_MN.abs().mean(-1, keepdim=True)
        + hat_MN.abs() * scale_error_M1
        + 4 * FP32_ROUNDOFF * scale_M1 * (x_MN.abs() + mean_M1.abs())
    )
    return Normalised(hat_MN, scale_M1, scale_error_M1, error_MN)


def dx_error(rows: Normalised, g_MN: Tensor, dx_MN: Tensor, dtype: str, *, centred: bool) -> Tensor:
    """The largest error of dx = r (g - [mean(g)] - x̂ c), c = mean(g x̂), g = dy w, with the errors e of x̂ and ρ of r:

    r (u |g| + 4 u (√Σg² / N + |x̂| √Σ(g x̂)² / N) + e |c| + |x̂| mean(|g| e)
       + (ρ + (16 + √N) 2^-24) (|g| + mean|g| + |x̂| mean|g x̂|)) + the rounding to the format.

    The terms with u: g may be rounded to the storage format, as it is where the forward pass multiplied the stored row by the
    weight (Llama). N such errors add up to √N of one; 4 u is seven standard deviations. The last term: sums in fp32.
    """
    n = g_MN.shape[-1]
    u = dtype_named(dtype).unit_roundoff
    hat_MN = rows.hat_MN.abs()
    product_MN = g_MN * rows.hat_MN
    c_M1 = product_MN.mean(-1, keepdim=True).abs()
    rounded_M1 = product_MN.square().sum(-1, keepdim=True).sqrt() / n
    sizes_MN = g_MN.abs() + hat_MN * product_MN.abs().mean(-1, keepdim=True)
    coarse_MN = 1.01 * g_MN.abs() + 4 * hat_MN * rounded_M1
    if centred:
        sizes_MN = sizes_MN + g_MN.abs().mean(-1, keepdim=True)
        coarse_MN = coarse_MN + 4 * g_MN.square().sum(-1, keepdim=True).sqrt() / n
    fine_MN = rows.error_MN * c_M1 + hat_MN * (g_MN.abs() * rows.error_MN).mean(-1, keepdim=True)
    fine_MN = fine_MN + (rows.scale_error + (16 + n**0.5) * FP32_ROUNDOFF) * sizes_MN
    error_MN: Tensor = rows.scale_M1 * (u * coarse_MN + fine_MN) + stored(dx_MN, dtype)
    return error_MN


def dw_error(rows: Normalised, dy_MN: Tensor, dw_N: Tensor, dtype: str) -> Tensor:
    """The largest error of dw = Σ dy x̂ over M rows: 4 u √Σ(dy x̂)² + Σ |dy| e + (8 + √M) 2^-24 Σ|dy x̂| + the rounding.

    The first term: x̂ and the products may be rounded to the storage format (Llama, Liger), M random errors. The sum itself is
    in fp32.
    """
    term_MN = dy_MN * rows.hat_MN
    u = dtype_named(dtype).unit_roundoff
    coarse_N = 4 * u * term_MN.square().sum(0).sqrt()
    fine_N = (dy_MN.abs() * rows.error_MN).sum(0)
    summed_N = (8 + len(dy_MN) ** 0.5) * FP32_ROUNDOFF * term_MN.abs().sum(0)
    error_N: Tensor = coarse_N + fine_N + summed_N + stored(dw_N, dtype)
    return error_N


def db_error(dy_MN: Tensor, db_N: Tensor, dtype: str) -> Tensor:
    """The largest error of db = Σ dy over M rows: 4 u √Σdy² + (8 + √M) 2^-24 Σ|dy| + the rounding.

    The first term: sums of blocks of rows may be rounded to the storage format before they are added up, as torch's are from
    65,536 rows on. Together these errors are u √Σdy² for any number of random blocks.
    """
    coarse_N = 4 * dtype_named(dtype).unit_roundoff * dy_MN.square().sum(0).sqrt()
    summed_N = (8 + len(dy_MN) ** 0.5) * FP32_ROUNDOFF * dy_MN.abs().sum(0)
    error_N: Tensor = coarse_N + summed_N + stored(db_N, dtype)
    return error_N


def rmsnorm_reference(x_MN: Tensor, w_N: Tensor) -> Tensors:
    """x / sqrt(mean(x²) + eps) * w along each row, in the dtype of the inputs (float64 in the gate)."""
    return (x_MN * (x_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N,)


def rmsnorm_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """|y| (2 u + (8 + √N / 2) 2^-24): statistics in fp32, at most two roundings to the output's format.

    The squares are positive, so their sum in fp32 errs by √N 2^-24 of itself, and the root halves that. 8 · 2^-24 cover
    the square, the mean, eps, the approximate reciprocal root (2 units) and the two products. Two roundings, because many models
    store the normalised row before they apply the weight, which then also multiplies the absolute error near zero.
    """
    statistics = (8 + problem.sizes["n"] ** 0.5 / 2) * FP32_ROUNDOFF
    smallest_N = inputs[1].abs() * nearest_zero(problem.dtype)
    return (outputs[0].abs() * statistics + stored(outputs[0], problem.dtype, times=2) + smallest_N,)


def rmsnorm_backward_reference(x_MN: Tensor, w_N: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = r (g - x̂ mean(g x̂)) and dw = Σ dy x̂, with r = 1 / sqrt(mean(x²) + eps), x̂ = x r, g = dy w."""
    r_M1 = (x_MN.square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat_MN, g_MN = x_MN * r_M1, dy_MN * w_N
    dx_MN = r_M1 * (g_MN - hat_MN * (g_MN * hat_MN).mean(-1, keepdim=True))
    return dx_MN, (dy_MN * hat_MN).sum(0)


def rmsnorm_backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """See `dx_error` and `dw_error`."""
    x_MN, w_N, dy_MN = inputs
    rows = root_mean_square(x_MN, EPS)
    return (
        dx_error(rows, dy_MN * w_N, outputs[0], problem.dtype, centred=False),
        dw_error(rows, dy_MN, outputs[1], problem.dtype),
    )


def layernorm_reference(x_MN: Tensor, w_N: Tensor, b_N: Tensor) -> Tensors:
    """(x - mean) / sqrt(var + eps) * w + b along each row, in the dtype of the inputs (float64 in the gate)."""
    away_MN = x_MN - x_MN.mean(-1, keepdim=True)
    return (away_MN * (away_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N + b_N,)


def layernorm_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """|w| times the error of x̂ (`standard_score`), the last product and sum in fp32, one rounding.

    The second sum of the rule, 2 (|x̂ w| + |b|) 2^-24, covers x̂ w + b where it is computed as x (r w) + (b - μ r w).
    """
    x_MN, w_N, b_N = inputs
    rows = standard_score(x_MN, EPS)
    last_MN = 2 * FP32_ROUNDOFF * ((rows.hat_MN * w_N).abs() + b_N.abs())
    return (rows.error_MN * w_N.abs() + last_MN + stored(outputs[0], problem.dtype),)


def layernorm_backward_reference(x_MN: Tensor, w_N: Tensor, b_N: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = r (g - mean(g) - x̂ mean(g x̂)), dw = Σ dy x̂ and db = Σ dy, with r = 1 / sqrt(var + eps), g = dy w."""
    away_MN = x_MN - x_MN.mean(-1, keepdim=True)
    r_M1 = (away_MN.square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat_MN, g_MN = away_MN * r_M1, dy_MN * w_N
    level_M1 = g_MN.mean(-1, keepdim=True)
    dx_MN = r_M1 * (g_MN - level_M1 - hat_MN * (g_MN * hat_MN).mean(-1, keepdim=True))
    return dx_MN, (dy_MN * hat_MN).sum(0), dy_MN.sum(0)


def layernorm_backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """See `dx_error`, `dw_error` and `db_error`."""
    x_MN, w_N, _, dy_MN = inputs
    rows = standard_score(x_MN, EPS)
    return (
        dx_error(rows, dy_MN * w_N, outputs[0], problem.dtype, centred=True),
        dw_error(rows, dy_MN, outputs[1], problem.dtype),
        db_error(dy_MN, outputs[2], problem.dtype),
    )


def _normalised_sum(s_MN: Tensor, dtype: str) -> Normalised:
    """The normalised sum, which may be computed from the stored sum: u for each element, and at most 4 u / √N for the scale.

    The scale depends on the mean of the N rounding errors, weighted by s²; it errs by at most u, if one element dominates.
    """
    exact = root_mean_square(s_MN, EPS)
    u = 1.01 * dtype_named(dtype).unit_roundoff
    coarse = u * min(1.0, 4 / s_MN.shape[-1] ** 0.5)
    error_MN = exact.error_MN + exact.hat_MN.abs() * (u + coarse)
    return Normalised(exact.hat_MN, exact.scale_M1, exact.scale_error + coarse, error_MN)


def add_rmsnorm_reference(x_MN: Tensor, r_MN: Tensor, w_N: Tensor) -> Tensors:
    """s = x + r and s / sqrt(mean(s²) + eps) * w along each row, in the dtype of the inputs (float64 in the gate)."""
    s_MN = x_MN + r_MN
    return s_MN, s_MN * (s_MN.square().mean(-1, keepdim=True) + EPS).rsqrt() * w_N


def add_rmsnorm_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """s: one rounding. y: as in rmsnorm, and the error because s may be rounded before it is normalised (`_normalised_sum`)."""
    s_MN, y_MN = outputs
    error_MN = (_normalised_sum(s_MN, problem.dtype).error_MN + nearest_zero(problem.dtype)) * inputs[2].abs()
    return stored(s_MN, problem.dtype), error_MN + stored(y_MN, problem.dtype, times=2)


def add_rmsnorm_backward_reference(x_MN: Tensor, r_MN: Tensor, w_N: Tensor, ds_MN: Tensor, dy_MN: Tensor) -> Tensors:
    """dx = ds + a (g - ŝ mean(g ŝ)), which is the gradient of r, too, and dw = Σ dy ŝ, a = 1 / sqrt(mean(s²) + eps)."""
    s_MN = x_MN + r_MN
    a_M1 = (s_MN.square().mean(-1, keepdim=True) + EPS).rsqrt()
    hat_MN, g_MN = s_MN * a_M1, dy_MN * w_N
    dx_MN = ds_MN + a_M1 * (g_MN - hat_MN * (g_MN * hat_MN).mean(-1, keepdim=True))
    return dx_MN, (dy_MN * hat_MN).sum(0)


def add_rmsnorm_backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """See `dx_error` and `dw_error`; the gradient through y may be stored before ds is added, and it may be two
    terms that are added to ds one after the other: 2^-24 (|ds| + |dx|).
    """
    x_MN, r_MN, w_N, ds_MN, dy_MN = inputs
    rows = _normalised_sum(x_MN + r_MN, problem.dtype)
    through_y_MN = outputs[0] - ds_MN
    error_MN = dx_error(rows, dy_MN * w_N, through_y_MN, problem.dtype, centred=False)
    error_MN = error_MN + FP32_ROUNDOFF * (ds_MN.abs() + outputs[0].abs())
    return error_MN + stored(outputs[0], problem.dtype), dw_error(rows, dy_MN, outputs[1], problem.dtype)
