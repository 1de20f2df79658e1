"""The variants of both chains in the order of their ladders; torch's variants are the same for rows and for scalars."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.pointwise_chain.reference import chain

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """Product, sum and relu of each step by torch: three kernels per step, each of which reads and writes all of x."""
    return lambda: chain(x, s_K, b_K)


@variant(backend="torch")
def torch_graph(x: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """The eager kernels replayed as one CUDA graph, which saves launches but no bytes: the cold device time is that of eager."""
    return _bind_graph(lambda: chain(x, s_K, b_K), x.device.type)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """torch.compile: inductor fuses all steps into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(chain, x, s_K, b_K)


def _bind_graph(run: Callable[[], Tensor], device_type: str) -> Launch:
    """A launch that replays the kernels of `run`; without a GPU `run` itself.

    A graph cannot be launched into a stream that is being captured. In a capture the launch calls `run`, so that the captured
    graph gets the same nodes.
    """
    if device_type != "cuda":
        return run
    import torch

    # The first call may load kernels and create handles, which is not possible in a capture.
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        out = run()

    def launch() -> Tensor:
        if torch.cuda.is_current_stream_capturing():
            return run()
        graph.replay()
        return out

    return launch


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_stepwise(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, one kernel per step: three operations for one read and one write, so k times the bytes of a fused chain."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN, stepwise=True)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_fused(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """Triton, all steps with one read and one write; s and b of a step are loaded when the step starts."""
    from kernelviz.ops.pointwise_chain import triton as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_known_size(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """Triton, compiled for the sizes and steps: up to 16 steps without a loop, all s and b loaded at once."""
    from kernelviz.ops.pointwise_chain import triton_known_size as kernels

    return kernels.bind_rows(x_MN, s_KN, b_KN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_fused(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, a 16-byte vector of each of 1 to 8 rows a thread; of few elements, all s and b are loaded at once."""
    from kernelviz.ops.pointwise_chain import cuda_at_once as kernels

    return kernels.bind_fused(x_MN, s_KN, b_KN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), dtypes=("bf16", "fp16"))
def cuda_fused_packed(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, fused in 16-bit arithmetic: one instruction for product, sum and relu of two elements, one rounding per step."""
    from kernelviz.ops.pointwise_chain import cuda_at_once as kernels

    return kernels.bind_fused(x_MN, s_KN, b_KN, packed=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalars_stepwise(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """CUDA C++, one kernel per step: three operations for one read and one write, so k times the bytes of a fused chain."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_scalars(x_N, s_K, b_K, stepwise=True)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_scalars_fused(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """Triton, all steps with one read and one write; a program reads the two numbers of a step when the step starts."""
    from kernelviz.ops.pointwise_chain import triton as kernels

    return kernels.bind_scalars(x_N, s_K, b_K)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_scalars_known_size(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """Triton, compiled for the size and steps: up to 16 steps without a loop, all numbers loaded at once."""
    from kernelviz.ops.pointwise_chain import triton_known_size as kernels

    return kernels.bind_scalars(x_N, s_K, b_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalars_fused(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """CUDA C++, all steps for one to four 16-byte vectors per thread, or one of few elements; fp32 between the steps."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_scalars(x_N, s_K, b_K)


@variant(backend="cuda", needs=("nvrtc", "cuda"), dtypes=("bf16", "fp16"))
def cuda_scalars_packed(x_N: Tensor, s_K: Tensor, b_K: Tensor) -> Launch:
    """CUDA C++, fused in 16-bit arithmetic: one instruction for product, sum and relu of two elements, one rounding per step."""
    from kernelviz.ops.pointwise_chain import cuda as kernels

    return kernels.bind_scalars(x_N, s_K, b_K, packed=True)


VARIANTS = (
    torch_eager,
    torch_graph,
    torch_compile,
    cuda_stepwise,
    triton_fused,
    triton_known_size,
    cuda_fused,
    cuda_fused_packed,
)
SCALAR_VARIANTS = (
    torch_eager,
    torch_graph,
    torch_compile,
    cuda_scalars_stepwise,
    triton_scalars_fused,
    triton_scalars_known_size,
    cuda_scalars_fused,
    cuda_scalars_packed,
)
