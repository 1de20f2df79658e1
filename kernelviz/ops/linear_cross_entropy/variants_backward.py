"""How the variants of `linear_cross_entropy` bind its backward pass, and the torch functions that some of them share."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged

if TYPE_CHECKING:
    from torch import Tensor


def fused(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Tensor:
    """The loss of a model's last layer: linear, then cross_entropy."""
    from torch.nn import functional

    return functional.cross_entropy(functional.linear(x_MH, w_VH), labels_M, reduction="none")


def composed(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Tensor:
    """The steps of the formula as single ops: a product, then the others in float32."""
    from torch.nn import functional

    wide_MV = functional.linear(x_MH, w_VH).float()
    # Detached: the gradient through the maximum is 0 except for rounding errors.
    shifted_MV = wide_MV - wide_MV.detach().amax(-1, keepdim=True)
    chosen_M = shifted_MV.gather(-1, labels_M[:, None]).squeeze(-1)
    return (shifted_MV.exp().sum(-1).log() - chosen_M).to(x_MH.dtype)


def composite_backward(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor, *, compute: str | None = None
) -> Launch:
    """The backward pass of the single ops: autograd runs that of each."""
    from kernelviz.ops.kernels.autograd import backward_of
    from kernelviz.ops.kernels.torch_precision import precision

    with precision(x_MH, compute):
        passes = backward_of(composed, (x_MH, w_VH, labels_M), (dloss_M,), (0, 1))
    return _in_precision(passes, x_MH, compute)


def eager_backward(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor, *, compute: str | None = None
) -> Launch:
    """The backward pass of both ops: autograd, from the ln p of all logits that the forward pass saved."""
    from kernelviz.ops.kernels.autograd import backward_of
    from kernelviz.ops.kernels.torch_precision import precision

    with precision(x_MH, compute):
        passes = backward_of(fused, (x_MH, w_VH, labels_M), (dloss_M,), (0, 1))
    return _in_precision(passes, x_MH, compute)


def compile_backward(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor, *, compute: str | None = None
) -> Launch:
    """The backward pass, compiled by inductor, from the logits that the forward pass saved."""
    from kernelviz.ops.kernels.inductor import compiled_backward
    from kernelviz.ops.kernels.torch_precision import precision

    with precision(x_MH, compute):
        passes = compiled_backward(fused, (x_MH, w_VH, labels_M), (dloss_M,), (0, 1))
    return _in_precision(passes, x_MH, compute)


def chunked_backward(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor, *, compute: str | None = None
) -> Launch:
    """Chunks of rows: logits again, softmax, and both products, of which that of w is added up in fp32."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.linear_cross_entropy import chunks

    return in_precision(chunks.bind_backward(x_MH, w_VH, labels_M, dloss_M), x_MH, compute)


def liger_backward(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor, *, compute: str | None = None
) -> Launch:
    """Liger's backward pass for losses that are not reduced: chunks as large as x, with logits computed again."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.linear_cross_entropy import liger as kernels

    return in_precision(kernels.bind_backward(x_MH, w_VH, labels_M, dloss_M), x_MH, compute)


def triton_backward(
    x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor, *, compute: str | None = None
) -> Launch:
    """Chunks of the vocabulary: a Triton kernel computes logits again and writes their gradients, then two cuBLAS products."""
    from kernelviz.ops.kernels.torch_precision import precision
    from kernelviz.ops.linear_cross_entropy import triton as kernels

    passes = kernels.bind_backward(x_MH, w_VH, labels_M, dloss_M)
    if not x_MH.is_cuda:  # Triton's interpreter has tensors of the processor
        return passes

    def launch() -> Tensor | tuple[Tensor, ...]:
        with precision(x_MH, compute):
            return passes.call()

    return Staged(passes.forward, launch)


def wgmma_backward(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """Chunks of the vocabulary: the wgmma kernel computes logits again, TMA stores their gradients, then two cuBLAS products."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.linear_cross_entropy import wgmma

    passes = wgmma.bind_backward(x_MH, w_VH, labels_M, dloss_M)
    return Staged(passes.forward, in_precision(passes.call, x_MH, None))


def _in_precision(passes: Staged, x_MH: Tensor, compute: str | None) -> Staged:
    """Both passes with the setting of torch. torch.compile compiles again where a setting has changed."""
    from kernelviz.ops.kernels.torch_precision import in_precision, precision

    def forward() -> None:
        with precision(x_MH, compute):
            passes.forward()

    return Staged(forward, in_precision(passes.call, x_MH, compute))
