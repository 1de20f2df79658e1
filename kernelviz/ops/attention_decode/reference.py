"""What the ops of this folder must compute, and how large the errors may be."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, added_in_fp32, nearest_zero, stored
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.kernels.attention_heads import group_of

if TYPE_CHECKING:
    from torch import Tensor

DEVIATIONS = 3
"""Of the rounded weights: each error is at most u p|v| and about 0.4 of it on average (root mean square), so this is seven
standard deviations of their sum, and the worst case of up to nine equal terms."""


def reference(q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor) -> Tensors:
    """softmax(q kᵀ / √d) v for the one query of each sequence and head, (B, Hq, D), in the dtype of the inputs (float64 in the
    gate). Errors: BadField where the query heads are no multiple of the key/value heads."""
    _, p_BHGL = _scores_and_weights(q_BHD, k_BLHD)
    return (_weighted(p_BHGL, v_BLHD).reshape(q_BHD.shape),)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |o| + 3 u √Σp²v² + a(L) (Σp|v| + |o|) + Σ p e (|v| + |o|), where a(N) = max(√N, min(N, 8)) 2^-24.

    o = Σ p v with the weights p = exp(s − m) / Σ exp(s − m). The terms, for a kernel that accumulates in fp32:
    - One rounding of the output to u (`stored`).
    - Each weight exp(s − m) is rounded to 16 bits before it is multiplied by v, at any running maximum m; these errors are
      independent, so they add up as their root of squares. In fp16 a weight below 2^-14 has an error of 2^-25 of the largest.
    - L products added up in fp32, for Σ p v and for Σ p, rescaling included.
    - An error e of a score changes its weight by the share e, and the output by p e (v − o). e = a(D) Σ|q||k| / √d for a sum of D
      products in fp32; 4 · 2^-24 (|s| + max|s|) for the scale, the factor log₂ e, and the difference from the maximum; and
      8 · 2^-24 for the exponential and the rescaling.
    """
    q_BHD, k_BLHD, v_BLHD = inputs
    (o_BHD,) = outputs
    return (_allowed(problem, q_BHD, k_BLHD, v_BLHD, o_BHD),)


def paged_reference(
    q_BHD: Tensor,
    k_pages_NPHD: Tensor,
    v_pages_NPHD: Tensor,
    table_BN: Tensor,
    l: int,  # noqa: E741  the axis
) -> Tensors:
    """`reference` of the first `l` tokens that the pages of each sequence hold, in the dtype of q."""
    return reference(q_BHD, *(_tokens(pages, table_BN, l).to(q_BHD.dtype) for pages in (k_pages_NPHD, v_pages_NPHD)))


def paged_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of `bound`, for the tokens that the pages of each sequence hold."""
    q_BHD, k_pages_NPHD, v_pages_NPHD, table_BN = inputs
    length = problem.sizes["l"]
    caches = (_tokens(pages, table_BN, length).to(q_BHD.dtype) for pages in (k_pages_NPHD, v_pages_NPHD))
    return bound(problem, (q_BHD, *caches), outputs)


def _tokens(pages_NPHD: Tensor, table_BN: Tensor, length: int) -> Tensor:
    """The keys or values of each sequence in order, (B, L, Hk, D)."""
    return pages_NPHD[table_BN.long()].flatten(1, 2)[:, :length]


def _scores_and_weights(q_BHD: Tensor, k_BLHD: Tensor) -> Tensors:
    """Scores q k / √d and their softmax over the tokens, (B, Hk, G, L) each."""
    import torch

    b, hq, d = q_BHD.shape
    hk = k_BLHD.shape[2]
    q_BHGD = q_BHD.reshape(b, hk, group_of(hq, hk), d)
    s_BHGL = torch.matmul(q_BHGD, k_BLHD.permute(0, 2, 3, 1)) * (1 / math.sqrt(d))
    return s_BHGL, s_BHGL.softmax(-1)


def _weighted(p_BHGL: Tensor, v_BLHD: Tensor) -> Tensor:
    """The sum of values with these weights, (B, Hk, G, D)."""
    import torch

    return torch.matmul(p_BHGL, v_BLHD.transpose(1, 2))


def _allowed(problem: Problem, q_BHD: Tensor, k_BLHD: Tensor, v_BLHD: Tensor, o_BHD: Tensor) -> Tensor:
    d, length = q_BHD.shape[2], k_BLHD.shape[1]
    s_BHGL, p_BHGL = _scores_and_weights(q_BHD, k_BLHD)
    sizes_BHGL, _ = _scores_and_weights(q_BHD.abs(), k_BLHD.abs())
    absolute_BHGL = s_BHGL.abs()
    e_BHGL = sizes_BHGL * added_in_fp32(d)
    e_BHGL += (absolute_BHGL + absolute_BHGL.amax(-1, keepdim=True)) * (4 * FP32_ROUNDOFF) + 8 * FP32_ROUNDOFF
    v_abs_BLHD = v_BLHD.abs()
    o_abs_BHGD = o_BHD.abs().view(*p_BHGL.shape[:3], d)
    pe_BHGL = p_BHGL * e_BHGL
    # With the largest weight 1, Σ exp(s − m) is 1 over the largest of the normalised weights.
    largest_BHG1 = p_BHGL.amax(-1, keepdim=True)
    terms = _weighted(p_BHGL.square(), v_BLHD.square()).sqrt() * (DEVIATIONS * dtype_named(problem.dtype).unit_roundoff)
    terms += v_abs_BLHD.sum(1)[:, :, None] * largest_BHG1 * nearest_zero(problem.dtype)
    terms += (_weighted(p_BHGL, v_abs_BLHD) + o_abs_BHGD) * added_in_fp32(length)
    terms += _weighted(pe_BHGL, v_abs_BLHD) + pe_BHGL.sum(-1, keepdim=True) * o_abs_BHGD
    return terms.reshape(o_BHD.shape) + stored(o_BHD, problem.dtype)
