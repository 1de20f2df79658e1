"""The variants of `cross_entropy` for short rows and for a few long ones, and how each binds the backward pass."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged, variant

if TYPE_CHECKING:
    from torch import Tensor


def triton_known_size_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """The backward pass with a tile of rows per program, compiled for one size."""
    from kernelviz.ops.cross_entropy import triton_known_size as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


def cuda_slab_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """The backward pass with short rows as pieces of shared memory."""
    from kernelviz.ops.cross_entropy import cuda_slab as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


def cuda_slab_stages_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """The backward pass with several pieces of short rows in flight."""
    from kernelviz.ops.cross_entropy import cuda_slab as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M, ring=kernels.STAGES)


def cuda_known_length_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """The backward pass with a thread per very short row."""
    from kernelviz.ops.cross_entropy import cuda_known_length as kernels

    return kernels.bind_backward(logits_MV, labels_M, dloss_M)


@variant(backend="triton", needs=("triton", "cuda"), backward=triton_known_size_backward)
def triton_known_size(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, compiled for one size of the logits: several short rows or one per program; rows of more than 8192 as before."""
    from kernelviz.ops.cross_entropy import triton_known_size as kernels

    return kernels.bind_loss(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_slab_backward)
def cuda_slab(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, many short rows as one piece through shared memory, a few threads each; longer ones as `cuda_row`."""
    from kernelviz.ops.cross_entropy import cuda_slab as kernels

    return kernels.bind_loss(logits_MV, labels_M)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    techniques=("bulk_copy",),
    backward=cuda_slab_stages_backward,
)
def cuda_slab_stages(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++ for Hopper: `cuda_slab` with persistent blocks, the next slabs of each in flight by bulk copies."""
    from kernelviz.ops.cross_entropy import cuda_slab as kernels

    return kernels.bind_loss(logits_MV, labels_M, ring=kernels.STAGES)


@variant(backend="cuda", needs=("nvrtc", "cuda"), backward=cuda_known_length_backward)
def cuda_known_length(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, compiled for one row length of at most 64 bytes: a thread has one to four rows; longer ones as `cuda_slab`."""
    from kernelviz.ops.cross_entropy import cuda_known_length as kernels

    return kernels.bind_loss(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_split(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, several blocks share each of a few long rows, in two launches; otherwise as `cuda_row`."""
    from kernelviz.ops.cross_entropy import cuda_split as kernels

    return kernels.bind_loss(logits_MV, labels_M)
