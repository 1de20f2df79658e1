"""The variants of `conv_bias_relu`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.convolution.tiles import SPACE, admits, tile_of
from kernelviz.ops.convolution.variants_wgmma import GLUON, WGMMA

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """torch.nn.functional.conv2d in channels_last, then relu: three kernels, of cuDNN, for the bias and for relu."""
    from kernelviz.ops.convolution import torch as launches

    return lambda: launches.conv_bias_relu(x_NHWC, w_KRRC, b_K, s)


@variant(backend="torch", needs=("cuda",))
def torch_cudnn_fused(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """cuDNN's kernels that add the bias and apply relu themselves, with its search on; the preparation has its time."""
    from kernelviz.ops.convolution import torch as launches

    return launches.bind_fused(x_NHWC, w_KRRC, b_K, s)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """torch.compile: inductor leaves the convolution to cuDNN and fuses bias and relu into one kernel."""
    from kernelviz.ops.convolution.torch import conv_bias_relu
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(lambda x, w, b: conv_bias_relu(x, w, b, s), x_NHWC, w_KRRC, b_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"), only_when_named=True)
def cuda_direct(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """CUDA C++, one thread an element of y: it reads its whole window and its whole filter, adds the bias, applies relu."""
    from kernelviz.ops.convolution import cuda as kernels

    return kernels.bind_direct(x_NHWC, w_KRRC, b_K, s)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_im2col(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """CUDA C++ writes each window as a row of a matrix (im2col), then one product by cuBLAS, which adds the bias, and relu."""
    from kernelviz.ops.convolution import torch as launches

    return launches.bind_im2col(x_NHWC, w_KRRC, b_K, s)


@variant(backend="torch", needs=("nvrtc", "cuda"))
def torch_cudnn_stepwise(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """cuDNN's convolution as its search found it, then bias and relu in one kernel of CUDA C++."""
    from kernelviz.ops.convolution import stepwise
    from kernelviz.ops.convolution import torch as launches

    return stepwise.then_bias_relu(launches.bind_searched(x_NHWC, w_KRRC, s), b_K)


@variant(**WGMMA)
def cuda_stepwise(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """CUDA C++, the wgmma kernel of conv2d, then bias and relu in one kernel: what fusing alone saves."""
    from kernelviz.ops.convolution import stepwise
    from kernelviz.ops.convolution import wgmma as kernels

    convolution = kernels.bind_by_size(x_NHWC, w_KRRC, None, s, resident=True, parts=True)
    return stepwise.then_bias_relu(convolution, b_K)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
)
def triton_stepwise(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """Triton, the implicit GEMM of conv2d, then bias and relu in one kernel: what fusing alone saves."""
    from kernelviz.ops.convolution import stepwise
    from kernelviz.ops.convolution import triton as kernels

    return stepwise.then_bias_relu_in_triton(kernels.bind_implicit(x_NHWC, w_KRRC, None, s, None), b_K)


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
    b_K: Tensor,
    *,
    s: int,
    tile_m: int = 0,
    tile_n: int = 0,
    tile_k: int = 0,
    warps: int = 0,
    stages: int = 0,
) -> Launch:
    """Triton, implicit GEMM: windows are read from the image where they are needed; bias and relu on the sums."""
    from kernelviz.ops.convolution import triton as kernels

    return kernels.bind_implicit(x_NHWC, w_KRRC, b_K, s, tile_of(tile_m, tile_n, tile_k, warps, stages))


@variant(**GLUON)
def gluon_boxes(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """Gluon: tiles are boxes of images, which TMA loads with zeros as padding; bias and relu on the sums before the store."""
    from kernelviz.ops.convolution import gluon as kernels

    return kernels.bind_boxes(x_NHWC, w_KRRC, b_K, s)


@variant(**WGMMA)
def cuda_wgmma_fused(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """CUDA C++, the wgmma kernel of conv2d, tile by size: bias and relu on the sums before the store."""
    from kernelviz.ops.convolution import wgmma as kernels

    return kernels.bind_by_size(x_NHWC, w_KRRC, b_K, s, resident=True, parts=True)


@variant(**WGMMA)
def cuda_wgmma_padded(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor, *, s: int) -> Launch:
    """CUDA C++, wgmma for any c and k: what is no multiple of 8 is padded by copies in the launch, whose time counts."""
    from kernelviz.ops.convolution import wgmma_padded as kernels

    return kernels.bind(x_NHWC, w_KRRC, b_K, s)


BIAS_RELU_VARIANTS = (
    torch_eager,
    torch_cudnn_fused,
    torch_compile,
    cuda_direct,
    cuda_im2col,
    torch_cudnn_stepwise,
    cuda_stepwise,
    triton_stepwise,
    triton_implicit,
    gluon_boxes,
    cuda_wgmma_fused,
    cuda_wgmma_padded,
)
