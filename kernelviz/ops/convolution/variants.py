"""The variants of `conv2d`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.convolution.tiles import SPACE, admits, tile_of

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """torch.nn.functional.conv2d in the format channels_last: cuDNN, with the kernel that its heuristics choose."""
    from kernelviz.ops.convolution import torch as launches

    return lambda: launches.conv2d(x_NHWC, w_KRRC, None, s)


@variant(backend="torch", needs=("cuda",), searches=True)
def torch_cudnn_search(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """cuDNN with its search on: all its kernels are timed when it is bound, and the time of the search is shown."""
    from kernelviz.ops.convolution import torch as launches

    return launches.bind_searched(x_NHWC, w_KRRC, s)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """torch.compile of the convolution, which inductor leaves to cuDNN."""
    from kernelviz.ops.convolution.torch import conv2d
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(lambda x, w: conv2d(x, w, None, s), x_NHWC, w_KRRC)


@variant(backend="cuda", needs=("nvrtc", "cuda"), only_when_named=True)
def cuda_direct(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """CUDA C++, one thread an element of y: it reads its whole window and its whole filter."""
    from kernelviz.ops.convolution import cuda as kernels

    return kernels.bind_direct(x_NHWC, w_KRRC, None, s)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_im2col(x_NHWC: Tensor, w_KRRC: Tensor, *, s: int) -> Launch:
    """CUDA C++ writes each window as a row of a matrix (im2col), r² times the image; then one product by cuBLAS."""
    from kernelviz.ops.convolution import torch as launches

    return launches.bind_im2col(x_NHWC, w_KRRC, None, s)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
    space=SPACE,
    admits=admits,
)
def triton_implicit(
    x_NHWC: Tensor,
    w_KRRC: Tensor,
    *,
    s: int,
    tile_m: int = 0,
    tile_n: int = 0,
    tile_k: int = 0,
    warps: int = 0,
    stages: int = 0,
) -> Launch:
    """Triton, implicit GEMM: rows of the product are windows read from the image where they are needed; tile by size."""
    from kernelviz.ops.convolution import triton as kernels

    return kernels.bind_implicit(x_NHWC, w_KRRC, None, s, tile_of(tile_m, tile_n, tile_k, warps, stages))


VARIANTS = (
    torch_eager,
    torch_cudnn_search,
    torch_compile,
    cuda_direct,
    cuda_im2col,
    triton_implicit,
)
