"""Cross-entropy as torch functions, and the binds of its backward pass. Imports no torch."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.core.problem import Cost
from kernelviz.ops.catalog.op import Backward, Launch, Sizes, Tensors, TensorSpec
from kernelviz.ops.cross_entropy.bounds import backward_bound

if TYPE_CHECKING:
    from torch import Tensor

LOGITS = TensorSpec(name="logits_MV", axes=("m", "v"))
LABELS = TensorSpec(name="labels_M", axes=("m",), dtype="int64", below="v", ids="labels")


def fused(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """torch's own: log_softmax, then the entry of each label."""
    from torch.nn import functional

    return functional.cross_entropy(logits_MV, labels_M, reduction="none")


def composed(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """The steps of the formula as single ops, in float32."""
    wide_MV = logits_MV.float()
    # Detached: what autograd would add to the maximum's gradient is 0 but for rounding.
    shifted_MV = wide_MV - wide_MV.detach().amax(-1, keepdim=True)
    chosen_M = shifted_MV.gather(-1, labels_M[:, None]).squeeze(-1)
    return (shifted_MV.exp().sum(-1).log() - chosen_M).to(logits_MV.dtype)


def composed_with_grad(logits_MV: Tensor, labels_M: Tensor) -> tuple[Tensor, Tensor]:
    """The same with the gradient, p less one at the label."""
    import torch

    wide_MV = logits_MV.float()
    shifted_MV = wide_MV - wide_MV.amax(-1, keepdim=True)
    chosen_M = shifted_MV.gather(-1, labels_M[:, None]).squeeze(-1)
    e_MV = shifted_MV.exp()
    sum_M1 = e_MV.sum(-1, keepdim=True)
    classes_V = torch.arange(logits_MV.shape[-1], device=logits_MV.device)
    gradient_MV = e_MV / sum_M1 - (classes_V == labels_M[:, None]).float()
    return (sum_M1.squeeze(-1).log() - chosen_M).to(logits_MV.dtype), gradient_MV.to(logits_MV.dtype)


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """Three operations an element (subtract, exp, subtract): logits, labels and gradients of the losses read, theirs written.

    >>> cost({"m": 2, "v": 1024}, 4)
    Cost(work_flop=6144, read_bytes=8216, written_bytes=8192)
    """
    m, v = sizes["m"], sizes["v"]
    read_bytes = (m * v + m) * itemsize_bytes + 8 * m
    return Cost(work_flop=3 * m * v, read_bytes=read_bytes, written_bytes=m * v * itemsize_bytes)


def gradient(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """p - 1(label), exact."""
    from torch.nn import functional

    return logits_MV.softmax(-1) - functional.one_hot(labels_M, logits_MV.shape[-1])


def reference(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Tensors:
    """dloss (p - 1(label)) along each row."""
    return (dloss_M[:, None] * gradient(logits_MV, labels_M),)


def composite(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """Of the single ops: autograd goes through each of them."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(composed, (logits_MV, labels_M), (dloss_M,), (0,))


def eager(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """Two kernels, from the ln p that log_softmax saves."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(fused, (logits_MV, labels_M), (dloss_M,), (0,))


def compiled(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """inductor's kernel."""
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(fused, (logits_MV, labels_M), (dloss_M,), (0,))


def triton(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """A program a piece of a row, from the ln Σ exp that the forward pass leaves."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


def cuda(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """A block a piece of a row, from the ln Σ exp that the forward pass leaves."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


BACKWARD = Backward(
    inputs=(LOGITS, LABELS, TensorSpec(name="dloss_M", axes=("m",))),
    outputs=(TensorSpec(name="dlogits_MV", axes=("m", "v")),),
    cost=cost,
    reference=reference,
    bound=backward_bound,
    rule=(
        "|error| ≤ 1.01 u |dx| + |dloss| p (exp(1.01 u (|ln p| + 1 + ln S) + units 2⁻²⁴) − 1): ln p may have been stored in "
        "the input's format, everything else in fp32"
    ),
    slab="m",
)
