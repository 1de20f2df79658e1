"""The variants of both chains; torch's own take rows and scalars alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


def chain(x: Tensor, s_K: Tensor, b_K: Tensor) -> Tensor:
    """relu(x s + b) with each s and b in turn (rows or scalars), every step in three operations."""
    for s, b in zip(s_K, b_K, strict=True):
        x = (x * s + b).relu()
    return x


@variant(backend="torch")
def torch_eager(x: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """Product, sum and relu of each step by torch: three kernels a step, each reads and writes the whole of x."""
    return lambda: chain(x, s_K, b_K)


@variant(backend="torch")
def torch_graph(x: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """The eager kernels replayed as one CUDA graph: it saves launches, not bytes; device time cold stays that of eager."""
    from kernelviz.ops.pointwise_chain.graph import bind_graph

    return bind_graph(lambda: chain(x, s_K, b_K), x.device.type)


@variant(backend="inductor", needs=("inductor",), late=True)
def torch_compile(x: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """torch.compile: inductor fuses all steps into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(chain, x, s_K, b_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_stepwise(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, one kernel a step: three operations on one read and one write, and k times the bytes of a fused chain."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN, stepwise=True)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_fused(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """Triton, all steps on one read and one write; s and b of a step are loaded when it comes."""
    from kernelviz.ops.pointwise_chain import triton as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_fused(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, a 16-byte word of 2 to 8 rows a thread, which share the s and b they read; fp32 between the steps."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), dtypes=("bf16", "fp16"))
def cuda_fused_packed(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, fused in 16-bit arithmetic: product, sum and relu of two elements are one instruction, a step one rounding."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN, packed=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalars_stepwise(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """CUDA C++, one kernel a step: three operations on one read and one write, and k times the bytes of a fused chain."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_scalars(x_N, s_K, b_K, stepwise=True)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_scalars_fused(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """Triton, all steps on one read and one write; a program reads the two numbers of a step when it comes."""
    from kernelviz.ops.pointwise_chain import triton as kernels

    return kernels.bind_scalars(x_N, s_K, b_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalars_fused(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """CUDA C++, all steps on 1 to 4 words of 16 bytes a thread, fp32 between the steps."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_scalars(x_N, s_K, b_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"), dtypes=("bf16", "fp16"))
def cuda_scalars_packed(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """CUDA C++, fused in 16-bit arithmetic: product, sum and relu of two elements are one instruction, a step one rounding."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_scalars(x_N, s_K, b_K, packed=True)
