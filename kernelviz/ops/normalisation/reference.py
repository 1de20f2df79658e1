"""What the bounds of this family share: how much a normalised row and the gradients that follow from it may err."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True, slots=True)
class Normalised:
    """Rows x̂ = (x - mean) scale in float64, and what fp32 arithmetic may err in them.

    `scale_error` is relative, `error_MN` absolute.
    """

    hat_MN: Tensor
    scale_M1: Tensor
    scale_error: Tensor | float
    error_MN: Tensor


def root_mean_square(x_MN: Tensor, eps: float) -> Normalised:
    """x̂ = x / √(mean(x²) + eps), which errs by (8 + √N / 2) 2^-24 of itself.

    The squares are positive, so their sum in fp32 errs by √N 2^-24 of itself, and the root halves that. 8 · 2^-24 pay for the
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
    s (mean(x²) + μ²) where it is E[x²] - μ²; the bound lets both pass, and they are the same where μ is small against the
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


def of_dx(rows: Normalised, g_MN: Tensor, dx_MN: Tensor, dtype: str, *, centred: bool) -> Tensor:
    """What dx = r (g - [mean(g)] - x̂ c), c = mean(g x̂), g = dy w, may err by, e being the error of x̂ and ρ that of r:

    r (u |g| + 4 u (√Σg² / N + |x̂| √Σ(g x̂)² / N) + e |c| + |x̂| mean(|g| e)
       + (ρ + (16 + √N) 2^-24) (|g| + mean|g| + |x̂| mean|g x̂|)) + the rounding to the format.

    The terms with u: g may be rounded to the storage format, as it is where the forward pass multiplied the stored row by the
    weight (Llama); N such errors add up as √N of them do, of which 4 u is seven deviations. Last: sums in fp32.
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


def of_dw(rows: Normalised, dy_MN: Tensor, dw_N: Tensor, dtype: str) -> Tensor:
    """What dw = Σ dy x̂ over M rows may err by: 4 u √Σ(dy x̂)² + Σ |dy| e + (8 + √M) 2^-24 Σ|dy x̂| + the rounding.

    The first term: x̂ and the products may be rounded to the storage format (Llama, Liger), M of them at random. The sum
    itself is in fp32.
    """
    term_MN = dy_MN * rows.hat_MN
    u = dtype_named(dtype).unit_roundoff
    coarse_N = 4 * u * term_MN.square().sum(0).sqrt()
    fine_N = (dy_MN.abs() * rows.error_MN).sum(0)
    summed_N = (8 + len(dy_MN) ** 0.5) * FP32_ROUNDOFF * term_MN.abs().sum(0)
    error_N: Tensor = coarse_N + fine_N + summed_N + stored(dw_N, dtype)
    return error_N


def of_db(dy_MN: Tensor, db_N: Tensor, dtype: str) -> Tensor:
    """What db = Σ dy over M rows may err by: 4 u √Σdy² + (8 + √M) 2^-24 Σ|dy| + the rounding.

    The first term: sums of blocks of rows may be rounded to the storage format before they are added up, as torch's are from
    65,536 rows on; of any number of random blocks they err together by u √Σdy².
    """
    coarse_N = 4 * dtype_named(dtype).unit_roundoff * dy_MN.square().sum(0).sqrt()
    summed_N = (8 + len(dy_MN) ** 0.5) * FP32_ROUNDOFF * dy_MN.abs().sum(0)
    error_N: Tensor = coarse_N + summed_N + stored(db_N, dtype)
    return error_N
