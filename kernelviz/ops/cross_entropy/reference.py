"""What both ops and the backward pass must compute, and how large errors may be."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import FP32_ROUNDOFF, stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def logarithms(logits_MV: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """ln p of every class; ln S of a row, S = Σ exp(x - max); and the units of 2^-24 by which that may be off in fp32.

    Those of softmax's sum, an error of which is one of its logarithm: 16 + √V + 2.5 D, D = Σ p (max - x). And two of max and
    of ln Σ exp x, since some algorithms add them before they subtract.
    """
    lnp_MV = logits_MV.log_softmax(-1)
    top_M1 = logits_MV.amax(-1, keepdim=True)
    p_MV = lnp_MV.exp()
    depth_M1 = (p_MV * (top_M1 - logits_MV).where(p_MV > 0, 0.0)).sum(-1, keepdim=True)
    whole_M1 = logits_MV.logsumexp(-1, keepdim=True)
    units_M1 = 16 + logits_MV.shape[-1] ** 0.5 + 2.5 * depth_M1 + 2 * (top_M1.abs() + whole_M1.abs())
    return lnp_MV, whole_M1 - top_M1, units_M1


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u (loss + 1 + ln S) + 2^-24 (16 + √V + 2.5 D + 2 (|max| + |ln Σ exp x|) + 2 |x_label|).

    In fp32 and rounded once; u (1 + ln S) for S and its logarithm, which torch keeps in the format of the logits on a CPU.
    """
    logits_MV, labels_M = inputs[0], inputs[1]
    _, sum_M1, units_M1 = logarithms(logits_MV)
    chosen_M1 = logits_MV.gather(-1, labels_M[:, None]).abs()
    error_M1 = (units_M1 + 2 * chosen_M1) * FP32_ROUNDOFF + (1 + sum_M1) * _unit(problem)
    return (error_M1.squeeze(-1) + stored(outputs[0], problem.dtype),)


def gradient_error(problem: Problem, logits_MV: Tensor) -> Tensor:
    """Of p - 1(label), before it is rounded: p times the error of ln p.

    A forward pass may leave ln p in the problem's format, as torch's does, with the roundings of `bound` in it: p times
    exp(1.01 u (|ln p| + 1 + ln S)) - 1, which in bf16 is 8 % of a p of 10^-5. In fp32 the exponent errs as the loss does, and by
    2.5 |ln p| of its own.
    """
    lnp_MV, sum_M1, units_M1 = logarithms(logits_MV)
    p_MV = lnp_MV.exp()
    lnp_MV = lnp_MV.abs().where(p_MV > 0, 0.0)
    exponent_MV = (lnp_MV + 1 + sum_M1) * _unit(problem) + (units_M1 + 2.5 * lnp_MV) * FP32_ROUNDOFF
    return p_MV * exponent_MV.expm1()


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """|dloss| times `gradient_error`, and what storing it errs by; two roundings of fp32 for the product."""
    logits_MV, dloss_M = inputs[0], inputs[2]
    error_MV = gradient_error(problem, logits_MV) * dloss_M[:, None].abs()
    return (error_MV + outputs[0].abs() * (2 * FP32_ROUNDOFF) + stored(outputs[0], problem.dtype),)


def with_grad_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The bound of the loss, and that of the backward pass with gradients of one."""
    (loss_M,) = bound(problem, inputs, outputs[:1])
    error_MV = gradient_error(problem, inputs[0])
    return (loss_M, error_MV + outputs[1].abs() * (2 * FP32_ROUNDOFF) + stored(outputs[1], problem.dtype))


def _unit(problem: Problem) -> float:
    return 1.01 * dtype_named(problem.dtype).unit_roundoff


def gradient(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """p - 1(label), exact."""
    from torch.nn import functional

    return logits_MV.softmax(-1) - functional.one_hot(labels_M, logits_MV.shape[-1])


def backward_reference(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Tensors:
    """dloss (p - 1(label)) along each row."""
    return (dloss_M[:, None] * gradient(logits_MV, labels_M),)


def with_grad_reference(logits_MV: Tensor, labels_M: Tensor) -> Tensors:
    """ln Σ exp x - x of the label, and p - 1(label): the gradient of the sum of the losses."""
    loss_M = -logits_MV.log_softmax(-1).gather(-1, labels_M[:, None]).squeeze(-1)
    return (loss_M, gradient(logits_MV, labels_M))


def reference(logits_MV: Tensor, labels_M: Tensor) -> Tensors:
    """ln Σ exp x - x of the label, a row each."""
    return (-logits_MV.log_softmax(-1).gather(-1, labels_M[:, None]).squeeze(-1),)
