"""The variants of `cross_entropy`, in ladder order, and how each binds the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


def fused(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """torch's cross_entropy: log_softmax, then the entry of each label."""
    from torch.nn import functional

    return functional.cross_entropy(logits_MV, labels_M, reduction="none")


def composed(logits_MV: Tensor, labels_M: Tensor) -> Tensor:
    """The steps of the formula as single ops, in float32."""
    wide_MV = logits_MV.float()
    # Detached: the gradient through the maximum is 0 except for rounding errors.
    shifted_MV = wide_MV - wide_MV.detach().amax(-1, keepdim=True)
    chosen_M = shifted_MV.gather(-1, labels_M[:, None]).squeeze(-1)
    return (shifted_MV.exp().sum(-1).log() - chosen_M).to(logits_MV.dtype)


def composite_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """The backward pass of the single ops: autograd runs that of each."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(composed, (logits_MV, labels_M), (dloss_M,), (0,))


def eager_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """The backward pass of cross_entropy: two kernels, from the ln p that log_softmax saves."""
    from kernelviz.ops.kernels.autograd import backward_of

    return backward_of(fused, (logits_MV, labels_M), (dloss_M,), (0,))


def compile_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """The backward pass, compiled by inductor."""
    from kernelviz.ops.kernels.inductor import compiled_backward

    return compiled_backward(fused, (logits_MV, labels_M), (dloss_M,), (0,))


def triton_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """The backward pass with one program a piece of a row, from the ln Σ exp that the forward pass writes."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


def cuda_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """The backward pass with one block a piece of a row, from the ln Σ exp that the forward pass writes."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


@variant(backend="torch", backward=composite_backward)
def composite_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: max, subtract, exp, sum and log, each a pass over the whole matrix."""
    return lambda: composed(logits_MV, labels_M)


@variant(backend="torch", backward=eager_backward)
def torch_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Eager: functional.cross_entropy, which is log_softmax (it writes as much as it reads), then the label's entry."""
    return lambda: fused(logits_MV, labels_M)


@variant(backend="inductor", needs=("inductor",), slow_compile=True, backward=compile_backward)
def torch_compile(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """torch.compile of cross_entropy: inductor reads the logits twice and stores no ln p."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(fused, logits_MV, labels_M)


@variant(backend="library", needs=("liger", "triton", "cuda"))
def liger(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Liger's Triton kernel without the gradient: a program of 1024 threads per row, online, in blocks of up to 32768."""
    from kernelviz.ops.cross_entropy import liger as kernels

    return kernels.bind_loss(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block_per_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, one program per row in one piece: no loads in flight while it is reduced. Rows beyond 64 KiB are read in chunks."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_block_per_row(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"), backward=triton_backward)
def triton_online(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over chunks of the row, several of them in flight: one read of memory."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_online(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_backward)
def cuda_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, one block per row: four 16-byte vectors per thread in flight while four are summed, maxima two at a time."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_loss(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
def cuda_cluster(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, as cuda_row, but up to eight SMs share a row if there are fewer rows than blocks fit on the GPU."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_loss_cluster(logits_MV, labels_M)
