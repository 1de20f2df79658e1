"""What `rope` computes in both directions, in float64, and how much a result may differ from it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.rounding import stored
from kernelviz.ops.catalog.tensors import Tensors

if TYPE_CHECKING:
    from torch import Tensor


def rotated(x_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    """Each pair (x, z) of a head rotated by its angle: (x cos - z sin, z cos + x sin), in the dtype of the inputs."""
    import torch

    x_THP, z_THP = x_TH2P.unbind(2)
    cos_T1P, sin_T1P = cos_TP[:, None], sin_TP[:, None]
    return torch.stack((x_THP * cos_T1P - z_THP * sin_T1P, z_THP * cos_T1P + x_THP * sin_T1P), dim=2)


def reference(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensors:
    """(x, z) → (x cos - z sin, z cos + x sin) for the two halves x and z of each head."""
    return rotated(q_TH2P, cos_TP, sin_TP), rotated(k_TH2P, cos_TP, sin_TP)


def _allowed(problem: Problem, x_TH2P: Tensor, y_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    straight = (x_TH2P * cos_TP[:, None, None]).abs()
    crossed = (x_TH2P.flip(2) * sin_TP[:, None, None]).abs()
    return stored(straight + crossed, problem.dtype) + stored(y_TH2P, problem.dtype)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u (|x cos| + |z sin| + |y|): both products and their sum may each be rounded to the format of the tensors.

    Llama's own code and Liger compute it so; a variant that computes in fp32 and rounds once errs far less. No sum has more
    than two terms, so there is no factor of K.
    """
    q_TH2P, k_TH2P, cos_TP, sin_TP = inputs
    return (
        _allowed(problem, q_TH2P, outputs[0], cos_TP, sin_TP),
        _allowed(problem, k_TH2P, outputs[1], cos_TP, sin_TP),
    )


def backward_reference(*inputs: Tensor) -> Tensors:
    """The gradients rotated back by the same angles, so with the sine negated. q and k are not needed."""
    _, _, cos_TP, sin_TP, dq_TH2P, dk_TH2P = inputs
    return reference(dq_TH2P, dk_TH2P, cos_TP, -sin_TP)


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """The bound of the forward pass, applied to the gradients."""
    _, _, cos_TP, sin_TP, dq_TH2P, dk_TH2P = inputs
    return bound(problem, (dq_TH2P, dk_TH2P, cos_TP, sin_TP), outputs)
