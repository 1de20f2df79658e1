"""What `linear_cross_entropy` and its backward pass must compute, and how large errors may be.

Everything is computed for some rows at a time, because a float64 matrix of logits (M, V) of a language model has gigabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, added_in_fp32, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

PIECE_ELEMENTS = 2**25
"""Logits of the rows that are computed at a time: 256 MiB in float64."""

RULE = (
    "|error| ≤ ln Σ p exp(e) + e[label] + 1.01 u (loss + 1 + ln S) + 2⁻²⁴ (16 + √V + 2.5 Σ p (max − z) + "
    "2 (|max| + |ln Σ exp z| + |z[label]|)), e = max(√H, min(H, 8)) 2⁻²⁴ Σ|x||w| + 1.01 u |z| for each logit z = x · w: "
    "added up in fp32 and possibly stored in the input's format; the rest as in cross_entropy"
)
BACKWARD_RULE = (
    "of dx Σ(E + 2.02 u |dz|)|w| over V, of dw Σ(E + 2.02 u |dz|)|x| over M, each with max(√K, min(K, 8)) 2⁻²⁴ Σ|terms| + "
    "1.01 u |result| as in matmul; dz = dloss (p − 1[label]) and E = |dloss| p (exp(e + ln Σ p exp(e) + 1.01 u (|ln p| + 1 + "
    "ln S) + units 2⁻²⁴) − 1), e and units as in the forward pass"
)


def pieces(rows: int, vocabulary: int) -> Iterator[slice]:
    """Ranges of rows with at most PIECE_ELEMENTS logits, or single rows.

    >>> [(s.start, s.stop) for s in pieces(5, PIECE_ELEMENTS // 2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    step = max(1, PIECE_ELEMENTS // vocabulary)
    for first in range(0, rows, step):
        yield slice(first, min(first + step, rows))


def reference(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Tensors:
    """ln Σ exp z - z of the label, with the logits z = x wᵀ; a row each."""
    import torch

    parts = []
    for rows in pieces(x_MH.shape[0], w_VH.shape[0]):
        lnp_MV = (x_MH[rows] @ w_VH.t()).log_softmax(-1)
        parts.append(-lnp_MV.gather(-1, labels_M[rows, None]).squeeze(-1))
    return (torch.cat(parts),)


def logarithms(logits_MV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ln p of every class; ln S of a row, S = Σ exp(z - max); and the units of 2^-24 by which that may be off in fp32.

    As in cross_entropy: 16 + √V + 2.5 D for softmax's sum, D = Σ p (max - z), and two of max and of ln Σ exp z, since some
    algorithms add them before they subtract.
    """
    lnp_MV = logits_MV.log_softmax(-1)
    top_M1 = logits_MV.amax(-1, keepdim=True)
    p_MV = lnp_MV.exp()
    depth_M1 = (p_MV * (top_M1 - logits_MV).where(p_MV > 0, 0.0)).sum(-1, keepdim=True)
    whole_M1 = logits_MV.logsumexp(-1, keepdim=True)
    units_M1 = 16 + logits_MV.shape[-1] ** 0.5 + 2.5 * depth_M1 + 2 * (top_M1.abs() + whole_M1.abs())
    return lnp_MV, whole_M1 - top_M1, units_M1


def gradient(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """p - 1[label], exact."""
    p_MV = logits_MV.softmax(-1)
    return p_MV.scatter_add_(-1, labels_M[:, None], p_MV.new_full((len(labels_M), 1), -1.0))


def logit_error(problem: Problem, x_MH: Tensor, magnitude_HV: Tensor, logits_MV: Tensor) -> Tensor:
    """e: how far a logit may be from x · w. `magnitude_HV`: |w|ᵀ.

    The H products are added up in fp32, as in matmul: max(√H, min(H, 8)) 2^-24 Σ|x||w|. A variant that stores the logits rounds
    each of them to the problem's format, u |z|, which a variant that reduces them in registers does not. Both are honest, so
    both are allowed; in bf16 the second term is the larger one.
    """
    accumulated_MV = (x_MH.abs() @ magnitude_HV) * added_in_fp32(x_MH.shape[1])
    error_MV: Tensor = accumulated_MV.add_(stored(logits_MV, problem.dtype))
    return error_MV


def whole_error(logits_MV: Tensor, error_MV: Tensor) -> Tensor:
    """(M, 1): the most that ln Σ exp z changes if each z errs by at most its e, which is ln Σ p exp(e)."""
    return (logits_MV + error_MV).logsumexp(-1, keepdim=True) - logits_MV.logsumexp(-1, keepdim=True)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """ln Σ p exp(e) + e[label] for the errors e of the logits (`logit_error`), and the bound of cross_entropy from there.

    ln Σ exp rises with each logit, so that its error is largest where all logits err upwards by their e; the label's logit may
    err the other way. What cross_entropy adds: 1.01 u (1 + ln S) for S = Σ exp(z - max) and its logarithm where torch keeps them
    in the problem's format; 2^-24 (16 + √V + 2.5 D + 2 (|max| + |ln Σ exp z| + |z_label|)) in fp32; one rounding of the loss.
    """
    import torch

    x_MH, w_VH, labels_M = inputs
    magnitude_HV = w_VH.abs().t()
    parts = []
    for rows in pieces(x_MH.shape[0], w_VH.shape[0]):
        logits_MV = x_MH[rows] @ w_VH.t()
        error_MV = logit_error(problem, x_MH[rows], magnitude_HV, logits_MV)
        label_M1 = labels_M[rows, None]
        _, sum_M1, units_M1 = logarithms(logits_MV)
        units_M1 += 2 * logits_MV.gather(-1, label_M1).abs()
        allowed_M1 = whole_error(logits_MV, error_MV) + error_MV.gather(-1, label_M1)
        parts.append((allowed_M1 + units_M1 * FP32_ROUNDOFF + (1 + sum_M1) * _unit(problem)).squeeze(-1))
    return (torch.cat(parts) + stored(outputs[0], problem.dtype),)


def backward_reference(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Tensors:
    """dx = dz w and dw = dzᵀ x, with dz = dloss (softmax(x wᵀ) - 1[label])."""
    import torch

    dx_MH, dw_VH = torch.empty_like(x_MH), torch.zeros_like(w_VH)
    for rows in pieces(x_MH.shape[0], w_VH.shape[0]):
        dz_MV = gradient(x_MH[rows] @ w_VH.t(), labels_M[rows]).mul_(dloss_M[rows, None])
        dx_MH[rows] = dz_MV @ w_VH
        dw_VH.addmm_(dz_MV.t(), x_MH[rows])
    return dx_MH, dw_VH


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The worst case over the errors of dz, and that of either product: V terms of dx, M terms of dw.

    dz = dloss (p - 1[label]), and p = exp(z - ln Σ exp z) errs by p (exp(e + ln Σ p exp(e) + …) - 1): e of the logit, that of
    ln Σ exp (`bound`), and those of cross_entropy's gradient, 1.01 u (|ln p| + 1 + ln S) where a forward pass stored ln p in the
    problem's format, as torch's does, and units of fp32. p - 1[label] may be stored in the problem's format, as Liger's kernel
    does, and so is dz before the products. The error of ln Σ exp is common to a row, so errors of different dz do not average
    out: the sum of their sizes is allowed.
    """
    import torch

    x_MH, w_VH, labels_M, dloss_M = inputs
    dx_MH, dw_VH = outputs
    magnitude_VH = w_VH.abs()
    dx_error, dw_error = torch.empty_like(dx_MH), torch.zeros_like(dw_VH)
    for rows in pieces(x_MH.shape[0], w_VH.shape[0]):
        logits_MV = x_MH[rows] @ w_VH.t()
        slope_M1 = dloss_M[rows, None]
        exponent_MV = logit_error(problem, x_MH[rows], magnitude_VH.t(), logits_MV)
        exponent_MV += whole_error(logits_MV, exponent_MV)
        lnp_MV, sum_M1, units_M1 = logarithms(logits_MV)
        p_MV = lnp_MV.exp()
        size_MV = lnp_MV.abs().where(p_MV > 0, 0.0)
        exponent_MV += (size_MV + 1 + sum_M1) * _unit(problem) + (units_M1 + 2.5 * size_MV) * FP32_ROUNDOFF
        # Infinite times a p of zero is NaN. exp(700) is finite in float64, and larger than any p that counts is small.
        error_MV = p_MV.mul_(exponent_MV.clamp_(max=700.0).expm1_()).mul_(slope_M1.abs())
        dz_MV = gradient(logits_MV, labels_M[rows]).abs_()
        error_MV += stored(dz_MV, problem.dtype) * slope_M1.abs()
        dz_MV *= slope_M1.abs()
        error_MV += stored(dz_MV, problem.dtype) + 2 * FP32_ROUNDOFF * dz_MV
        dx_error[rows] = (error_MV + dz_MV * added_in_fp32(w_VH.shape[0])) @ magnitude_VH
        dw_error.addmm_((error_MV + dz_MV * added_in_fp32(x_MH.shape[0])).t(), x_MH[rows].abs())
    return dx_error + stored(dx_MH, problem.dtype), dw_error + stored(dw_VH, problem.dtype)


def _unit(problem: Problem) -> float:
    return 1.01 * dtype_named(problem.dtype).unit_roundoff
