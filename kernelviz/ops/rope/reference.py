"""What `rope` is: its tensors, what it must move, the reference, and how much a result may err, in both directions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost, Problem
from kernelviz.ops.catalog.op import Backward, Sizes, Tensors, TensorSpec
from kernelviz.ops.catalog.rounding import stored

if TYPE_CHECKING:
    from torch import Tensor


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Six operations a pair (four products, two sums); heads read and written once, one row of cosines and sines a token read.

    >>> cost({"t": 2, "hq": 32, "hk": 8, "p": 64}, 2)
    Cost(work_flop=30720, read_bytes=20992, written_bytes=20480)
    """
    t, p = sizes["t"], sizes["p"]
    heads_bytes = t * (sizes["hq"] + sizes["hk"]) * 2 * p * itemsize_bytes
    tables_bytes = 2 * t * p * itemsize_bytes
    return Cost(
        work_flop=6 * t * (sizes["hq"] + sizes["hk"]) * p,
        read_bytes=heads_bytes + tables_bytes,
        written_bytes=heads_bytes,
    )


def turned(x_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    import torch

    x_THP, z_THP = x_TH2P.unbind(2)
    cos_T1P, sin_T1P = cos_TP[:, None], sin_TP[:, None]
    return torch.stack((x_THP * cos_T1P - z_THP * sin_T1P, z_THP * cos_T1P + x_THP * sin_T1P), dim=2)


def reference(q_TH2P: Tensor, k_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensors:
    """(x, z) → (x cos - z sin, z cos + x sin) for the two halves x and z of each head."""
    return turned(q_TH2P, cos_TP, sin_TP), turned(k_TH2P, cos_TP, sin_TP)


def _allowed(problem: Problem, x_TH2P: Tensor, y_TH2P: Tensor, cos_TP: Tensor, sin_TP: Tensor) -> Tensor:
    straight = (x_TH2P * cos_TP[:, None, None]).abs()
    crossed = (x_TH2P.flip(2) * sin_TP[:, None, None]).abs()
    return stored(straight + crossed, problem.dtype) + stored(y_TH2P, problem.dtype)


def bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """1.01 u (|x cos| + |z sin| + |y|): both products and their sum may each be rounded to the format of the tensors.

    That is how Llama's own code and Liger compute it; what computes in fp32 and rounds once stays far inside. Nothing is
    summed over more than two terms, so there is no factor of K.
    """
    q_TH2P, k_TH2P, cos_TP, sin_TP = inputs
    return (
        _allowed(problem, q_TH2P, outputs[0], cos_TP, sin_TP),
        _allowed(problem, k_TH2P, outputs[1], cos_TP, sin_TP),
    )


RULE = "|error| ≤ 1.01 u (|x cos| + |z sin| + |y|): products and sum each rounded to the format of the tensors"


def backward_reference(*inputs: Tensor) -> Tensors:
    """The gradients turned back: by the same angles with the sign of the sine reversed. q and k themselves are not needed."""
    _, _, cos_TP, sin_TP, dq_TH2P, dk_TH2P = inputs
    return reference(dq_TH2P, dk_TH2P, cos_TP, -sin_TP)


def backward_bound(problem: Problem, inputs: Tensors, outputs: Tensors) -> Tensors:
    """That of the forward pass, for the gradients."""
    _, _, cos_TP, sin_TP, dq_TH2P, dk_TH2P = inputs
    return bound(problem, (dq_TH2P, dk_TH2P, cos_TP, sin_TP), outputs)


Q = TensorSpec(name="q_TH2P", axes=("t", "hq", 2, "p"))
K = TensorSpec(name="k_TH2P", axes=("t", "hk", 2, "p"))
# Cosines and sines of anything: that they lie on a circle is nothing that an implementation may use.
TABLES = (
    TensorSpec(name="cos_TP", axes=("t", "p"), data="uniform"),
    TensorSpec(name="sin_TP", axes=("t", "p"), data="uniform"),
)
OUTPUTS = (
    TensorSpec(name="q_out_TH2P", axes=("t", "hq", 2, "p")),
    TensorSpec(name="k_out_TH2P", axes=("t", "hk", 2, "p")),
)
BACKWARD = Backward(
    inputs=(
        Q,
        K,
        *TABLES,
        TensorSpec(name="dq_TH2P", axes=("t", "hq", 2, "p")),
        TensorSpec(name="dk_TH2P", axes=("t", "hk", 2, "p")),
    ),
    outputs=(
        TensorSpec(name="q_grad_TH2P", axes=("t", "hq", 2, "p")),
        TensorSpec(name="k_grad_TH2P", axes=("t", "hk", 2, "p")),
    ),
    cost=cost,
    reference=backward_reference,
    bound=backward_bound,
    rule=RULE,
    slab="t",
)
