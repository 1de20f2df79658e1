"""The variants of `cross_entropy_with_grad`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.cross_entropy.variants import fused

if TYPE_CHECKING:
    from torch import Tensor


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


@variant(backend="torch")
def composite_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Single torch ops in float32, rounded at the end: the losses, then the gradient from the same exponentials."""
    return lambda: composed_with_grad(logits_MV, labels_M)


@variant(backend="torch")
def torch_eager(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Eager as in training: functional.cross_entropy, then autograd, which reads the ln p that log_softmax has stored."""
    import torch

    ones_M = torch.ones(labels_M.shape, dtype=logits_MV.dtype, device=logits_MV.device)

    def launch() -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            leaf_MV = logits_MV.detach().requires_grad_()
            loss_M = fused(leaf_MV, labels_M)
        (gradient_MV,) = torch.autograd.grad(loss_M, leaf_MV, ones_M)
        return loss_M.detach(), gradient_MV

    return launch


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """torch.compile of the formulas of loss and gradient in one function, so that inductor can share what they read."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(composed_with_grad, logits_MV, labels_M)


@variant(backend="library", needs=("liger", "triton", "cuda"), mutates=("logits_MV",))
def liger(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Liger's Triton kernel: the gradient overwrites the logits, so there is no second matrix; a row is read twice."""
    from kernelviz.ops.cross_entropy import liger as kernels

    return kernels.bind_with_grad(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_online(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, maximum and sum in one pass over chunks of the row; a second pass, served by L2, writes the gradient."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_online_with_grad(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block_per_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, a row of up to 64 KiB is read once, kept in registers until the sum is known, and written as the gradient."""
    from kernelviz.ops.cross_entropy import triton as kernels

    return kernels.bind_block_per_row_with_grad(logits_MV, labels_M)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_known_size(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Triton, compiled for one size of the logits: several short rows or one per program; rows of more than 8192 as before."""
    from kernelviz.ops.cross_entropy import triton_known_size as kernels

    return kernels.bind_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_row(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, one block per row: up to 64 KiB in registers as 16-byte vectors; longer rows are read twice, in chunks."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_row_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"))
def cuda_cluster(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, long rows in registers and shared memory of one SM or a cluster, so that each is read only once."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_cluster_with_grad(logits_MV, labels_M)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
)
def cuda_columns(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, persistent clusters: while one gradient is written, the next row is summed and the one after it prefetched."""
    from kernelviz.ops.cross_entropy import cuda as kernels

    return kernels.bind_columns_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_slab(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, many short rows as one piece through shared memory and back, a few threads each; longer ones as `cuda_row`."""
    from kernelviz.ops.cross_entropy import cuda_slab as kernels

    return kernels.bind_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",))
def cuda_slab_stages(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++ for Hopper: `cuda_slab` with persistent blocks, slabs in flight both ways by bulk copies."""
    from kernelviz.ops.cross_entropy import cuda_slab as kernels

    return kernels.bind_with_grad(logits_MV, labels_M, ring=kernels.STAGES)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_known_length(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, compiled for one row length of at most 64 bytes: a thread has one to four rows; longer ones as `cuda_slab`."""
    from kernelviz.ops.cross_entropy import cuda_known_length as kernels

    return kernels.bind_with_grad(logits_MV, labels_M)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_split(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """CUDA C++, several blocks share each of a few long rows: maxima and sums first, then the gradient, mostly from L2."""
    from kernelviz.ops.cross_entropy import cuda_split as kernels

    return kernels.bind_with_grad(logits_MV, labels_M)


WITH_GRAD_VARIANTS = (
    composite_eager,
    torch_eager,
    torch_compile,
    liger,
    triton_online,
    triton_block_per_row,
    triton_known_size,
    cuda_row,
    cuda_cluster,
    cuda_columns,
    cuda_slab,
    cuda_slab_stages,
    cuda_known_length,
    cuda_split,
)
