"""What `attention` and `causal_attention` must compute, and how large their errors may be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, nearest_zero, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor

ROWS_AT_ONCE = 1024
"""Queries whose scores exist at the same time: 128 MiB for 16,384 keys."""


@dataclass(frozen=True, slots=True)
class Head:
    """Some queries of a head (R, D), their keys and values (L, D), and their weights (R, L), all float64.

    `output`: where the queries are in a tensor like q, (batch, range of positions, head).
    """

    output: tuple[int, slice, int]
    query_heads: int
    q_RD: Tensor
    k_LD: Tensor
    v_LD: Tensor
    scores_RL: Tensor
    weights_RL: Tensor

    def keys(self, k_BSHD: Tensor) -> tuple[int, slice, int]:
        """Where its keys are in a tensor like k."""
        batch, _, head = self.output
        return batch, slice(0, self.k_LD.shape[0]), head // (self.query_heads // k_BSHD.shape[2])

    def score_errors(self, unit: float) -> Tensor:
        """By how much an implementation may err in each score (R, L), which `bound` explains."""
        scores_RL = self.scores_RL.masked_fill(self.weights_RL == 0, 0.0)
        dimension = self.q_RD.shape[1]
        scale = float(dimension) ** -0.5
        sizes_RL = self.q_RD.abs() @ self.k_LD.abs().T * scale
        error_RL: Tensor = scores_RL.abs() * (2 * unit + 2 * FP32_ROUNDOFF) + sizes_RL * (FP32_ROUNDOFF / scale)
        return error_RL


def heads(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, causal: bool) -> Iterator[Head]:
    """The queries of all heads in parts of at most `ROWS_AT_ONCE`; a causal part with the keys up to its last query alone."""
    import torch

    batches, length, query_heads, dimension = q_BSHD.shape
    shared = query_heads // k_BSHD.shape[2]
    for batch in range(batches):
        for head in range(query_heads):
            for first in range(0, length, ROWS_AT_ONCE):
                rows = slice(first, min(first + ROWS_AT_ONCE, length))
                keys = slice(0, rows.stop if causal else length)
                q_RD = q_BSHD[batch, rows, head]
                k_LD, v_LD = k_BSHD[batch, keys, head // shared], v_BSHD[batch, keys, head // shared]
                scores_RL = q_RD @ k_LD.T / dimension**0.5
                if causal:
                    shape = scores_RL.shape
                    later_RL = torch.ones(shape, dtype=torch.bool, device=q_RD.device).triu(keys.stop - shape[0] + 1)
                    scores_RL.masked_fill_(later_RL, -torch.inf)
                yield Head((batch, rows, head), query_heads, q_RD, k_LD, v_LD, scores_RL, scores_RL.softmax(-1))


def attention(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Tensors:
    """softmax(q kᵀ / √D) v of each head, in the dtype of the inputs (float64 in the gate)."""
    return _outputs(q_BSHD, k_BSHD, v_BSHD, causal=False)


def causal_attention(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor) -> Tensors:
    """As `attention`, of keys up to the position of the query."""
    return _outputs(q_BSHD, k_BSHD, v_BSHD, causal=True)


def _outputs(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, causal: bool) -> Tensors:
    import torch

    o_BSHD = torch.empty_like(q_BSHD)
    for head in heads(q_BSHD, k_BSHD, v_BSHD, causal):
        o_BSHD[head.output] = head.weights_RL @ head.v_LD
    return (o_BSHD,)


INDEPENDENT = 5
"""Rounding errors are spread evenly between -e and e. If they are independent, their sum exceeds 5 √(Σ e²) with a probability of
at most 2 exp(-37.5) = 1e-16, because an even distribution is sub-Gaussian with the variance e² / 3."""


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u |o| + u |o| + 5 √(Σ w² (u² v² + δ² (v - o)²)) + (16 + √L) 2^-24 Σ w |v|, with w the weights and L keys.

    An implementation rounds, in this order:
    1. scores. In fp32, the D products of a score are added with an error of at most √D 2^-24 Σ |q k| / √D, and exp2 needs them
       times log2 e: 2^-24 |s|. An implementation that stores scores (`composite_eager`) rounds them to the format of the
       tensors, before and after it divides them by √D: 2 u |s|. δ is the sum. An error of a score changes its own weight and
       the sum of all weights, so o by w δ (v - o).
    2. weights, to the format of the tensors for the tensor cores: u w v, and for small ones half the smallest number of fp16.
    3. sums of L terms in fp32, which are rescaled: (16 + √L) 2^-24 Σ w |v|, the approximate exponential (2^-22) and the
       division included.
    4. the output: 1.01 u |o|.

    The errors of different keys are independent, so that they add up as the square root of the sum of squares. Keys with
    equal scores err equally, in the worst case all of them: another u |o|, because Σ w v = o. Errors δ that are equal for all
    keys cancel, because Σ w (v - o) = 0.
    """
    import torch

    (o_BSHD,) = outputs
    unit = dtype_named(problem.dtype).unit_roundoff
    allowed_BSHD = torch.empty_like(o_BSHD)
    for head in heads(inputs[0], inputs[1], inputs[2], causal=problem.op.startswith("causal")):
        o_RD, v_LD = o_BSHD[head.output], head.v_LD
        w_RL, length = head.weights_RL, v_LD.shape[0]
        squares_RL = (w_RL * head.score_errors(unit)) ** 2
        moved_RD = squares_RL @ v_LD**2 - 2 * o_RD * (squares_RL @ v_LD) + o_RD**2 * squares_RL.sum(-1, keepdim=True)
        rounded_RD = (unit * w_RL + nearest_zero(problem.dtype)) ** 2 @ v_LD**2
        independent_RD = rounded_RD + moved_RD.clamp_min(0.0)
        added_RD = (16 + length**0.5) * FP32_ROUNDOFF * (w_RL @ v_LD.abs())
        equal = unit + nearest_zero(problem.dtype) * length
        allowed_BSHD[head.output] = INDEPENDENT * independent_RD.sqrt() + equal * o_RD.abs() + added_RD
    return (allowed_BSHD + stored(o_BSHD, problem.dtype),)


def attention_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Tensors:
    """The gradients of q, k and v from that of o."""
    return _gradients(q_BSHD, k_BSHD, v_BSHD, do_BSHD, causal=False)


def causal_attention_backward(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor) -> Tensors:
    """As `attention_backward`, of keys up to the position of the query."""
    return _gradients(q_BSHD, k_BSHD, v_BSHD, do_BSHD, causal=True)


def _gradients(q_BSHD: Tensor, k_BSHD: Tensor, v_BSHD: Tensor, do_BSHD: Tensor, causal: bool) -> Tensors:
    """With w the weights and ∂w = do vᵀ: ∂s = w (∂w - Σ w ∂w), dq = ∂s k / √D, dk = ∂sᵀ q / √D, dv = wᵀ do."""
    import torch

    dq_BSHD, dk_BSHD, dv_BSHD = torch.empty_like(q_BSHD), torch.zeros_like(k_BSHD), torch.zeros_like(v_BSHD)
    scale = q_BSHD.shape[-1] ** -0.5
    for head in heads(q_BSHD, k_BSHD, v_BSHD, causal):
        do_RD, w_RL, keys = do_BSHD[head.output], head.weights_RL, head.keys(k_BSHD)
        dw_RL = do_RD @ head.v_LD.T
        ds_RL = w_RL * (dw_RL - (w_RL * dw_RL).sum(-1, keepdim=True))
        dq_BSHD[head.output] = ds_RL @ head.k_LD * scale
        dk_BSHD[keys] += ds_RL.T @ head.q_RD * scale
        dv_BSHD[keys] += w_RL.T @ do_RD
    return dq_BSHD, dk_BSHD, dv_BSHD


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """What the roundings of w, ∂w and ∂s, of o and of the scores change, and the sums in fp32; see `bound` for w, δ and 5.

    w of the backward pass errs by its own rounding (u w), that of its score (δ w) and that of the row's sum of weights, which
    is at most √(Σ w² δ²) =: ν and the same for the whole row. So dv errs by 5 √(Σ w² (u + δ + ν)² do²), over queries.
    ∂s = w (∂w - Δ) errs by e = (4 u + δ + ν) |∂s| + u w |∂w|: it is rounded before the products, and twice more where it is
    stored before it is multiplied with 1 / √D; w is rounded, and ∂w where it is stored. dq errs by 5 √(Σ e² k²) / √D, and dk
    by the same of q, over queries.
    Δ = Σ do o is computed with the rounded o: it errs by 5 u √(Σ do² o²), and by 10 u √(Σ w² ∂w²), because o was computed
    with rounded weights. The error is the same for all keys of a query: dq errs by it times |Σ w k| / √D, dk by
    5 √(Σ w² Δ_error² q²) / √D.
    Where several query heads share a key, their gradients may be stored before they are added: u each, and u for the sum.
    Sums in fp32 of L terms: (16 + √L) 2^-24 Σ of their sizes. One rounding of each output, and u of it where equal terms err
    equally.
    """
    import torch

    q_BSHD, k_BSHD, v_BSHD, do_BSHD = inputs
    unit = dtype_named(problem.dtype).unit_roundoff
    scale = q_BSHD.shape[-1] ** -0.5
    allowed = [torch.empty_like(q_BSHD), torch.zeros_like(k_BSHD), torch.zeros_like(v_BSHD)]
    squares = [torch.zeros_like(k_BSHD), torch.zeros_like(v_BSHD)]
    additions = (16 + (q_BSHD.shape[1] * q_BSHD.shape[2] // k_BSHD.shape[2]) ** 0.5) * FP32_ROUNDOFF
    for head in heads(q_BSHD, k_BSHD, v_BSHD, causal=problem.op.startswith("causal")):
        do_RD, w_RL, keys = do_BSHD[head.output], head.weights_RL, head.keys(k_BSHD)
        dw_RL = do_RD @ head.v_LD.T
        ds_RL = w_RL * (dw_RL - (w_RL * dw_RL).sum(-1, keepdim=True))
        error_RL = head.score_errors(unit)
        error_RL += ((w_RL * error_RL) ** 2).sum(-1, keepdim=True).sqrt()
        o_RD = w_RL @ head.v_LD
        delta_R1 = ((do_RD * o_RD) ** 2).sum(-1, keepdim=True).sqrt()
        delta_R1 = INDEPENDENT * unit * (delta_R1 + 2 * ((w_RL * dw_RL) ** 2).sum(-1, keepdim=True).sqrt())
        smallest = nearest_zero(problem.dtype)
        ds_error_RL = (4 * unit + error_RL) * ds_RL.abs() + unit * w_RL * dw_RL.abs() + 2 * smallest
        w_error_RL = (unit + error_RL) * w_RL + smallest
        ds_squares_RL, w_squares_RL = ds_error_RL**2, w_error_RL**2
        dq_RD = INDEPENDENT * (ds_squares_RL @ head.k_LD**2).sqrt() * scale
        dq_RD += delta_R1 * (w_RL @ head.k_LD).abs() * scale + additions * scale * (ds_RL.abs() @ head.k_LD.abs())
        allowed[0][head.output] = dq_RD
        squares[0][keys] += (ds_squares_RL.T @ head.q_RD**2 + (w_RL**2).T @ (delta_R1 * head.q_RD) ** 2) * scale**2
        squares[1][keys] += w_squares_RL.T @ do_RD**2
        for gradient, one_LD in enumerate((ds_RL.T @ head.q_RD * scale, w_RL.T @ do_RD)):
            squares[gradient][keys] += (unit * one_LD) ** 2
        allowed[1][keys] += additions * scale * (ds_RL.abs().T @ head.q_RD.abs())
        allowed[2][keys] += additions * (w_RL.T @ do_RD.abs())
    allowed[1] += INDEPENDENT * squares[0].sqrt() + unit * outputs[1].abs()
    allowed[2] += INDEPENDENT * squares[1].sqrt() + unit * outputs[2].abs()
    allowed[0] += unit * outputs[0].abs()
    return tuple(a + stored(out, problem.dtype) for a, out in zip(allowed, outputs, strict=True))
