"""The variants of `matmul`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, PublishedGain, variant
from kernelviz.ops.matmul.variants_backward import eager_backward, grouped_backward

if TYPE_CHECKING:
    from torch import Tensor


def siboehm(factor: float, over: str) -> PublishedGain:
    """A gain that Simon Boehm published of an fp32 product of 4092 × 4092 matrices."""
    return PublishedGain(factor=factor, over=over, gpu="RTX A6000", source="siboehm.com/articles/22/CUDA-MMM")


@variant(backend="torch", backward=eager_backward)
def torch_eager(a_MK: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """torch.mm into a buffer that was allocated before: cuBLAS on a GPU, oneDNN or MKL on a CPU."""
    from kernelviz.ops.matmul.torch import bind_mm

    return bind_mm(a_MK, b_KN, compute)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma"),
    backward=grouped_backward,
)
def triton_grouped(a_MK: Tensor, b_KN: Tensor, *, compute: str | None = None) -> Launch:
    """Triton, one tile of the product per program; tiles in groups of eight rows, so that L2 serves both factors."""
    from kernelviz.ops.matmul import triton as kernels

    return kernels.bind_grouped(a_MK, b_KN, compute=compute)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    computes=("ieee",),
    published=siboehm(6.43, over="cuda_rows_across_threads"),
)
def cuda_naive(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, one thread per element of the product; neighbouring threads read neighbouring elements."""
    from kernelviz.ops.matmul import cuda as kernels

    return kernels.bind_naive(a_MK, b_KN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), computes=("ieee",), published=siboehm(1.50, over="cuda_naive"))
def cuda_tiled(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, tiles of 32×32 in shared memory: each element is read from memory 32 times less often."""
    from kernelviz.ops.matmul import cuda as kernels

    return kernels.bind_tiled(a_MK, b_KN)
