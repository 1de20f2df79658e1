"""The variants of `scale` in the order of the ladder: eager, a C++ extension, compilers, then kernels of wider accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, PublishedGain, variant
from kernelviz.ops.scale.reference import FACTOR

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.mul by a Python float, into a buffer that was allocated before."""
    import torch

    out_N = torch.empty_like(x_N)
    return lambda: torch.mul(x_N, FACTOR, out=out_N)


@variant(backend="cpp", needs=("cpu", "cxx"), slow_compile=True)
def cpp_extension(x_N: Tensor) -> Launch:
    """A C++ extension of torch, built with -O3: it calls torch's own product, so it can only save Python's dispatch."""
    from kernelviz.ops.scale import extension

    return extension.bind_custom_scale(x_N, FACTOR)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
    from kernelviz.ops.kernels.inductor import compiled

    def scaled(x_N: Tensor) -> Tensor:
        return x_N * FACTOR

    return compiled(scaled, x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block(x_N: Tensor) -> Launch:
    """Triton, 1024 elements per program at every size."""
    from kernelviz.ops.scale import triton as kernels

    return kernels.bind_scale(x_N, FACTOR, block=1024)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_known_size(x_N: Tensor) -> Launch:
    """Triton, up to 2^20 elements compiled for their number: no mask, loads as wide as it allows; others as triton_block."""
    from kernelviz.ops.scale import triton_known_size as kernels

    return kernels.bind_known_size(x_N, FACTOR)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    dtypes=("fp32",),
    only_when_named=True,
    published=PublishedGain(factor=0.05 / 0.03, over="torch_eager", gpu="a GPU that is not named", source="source 2"),
)
def cuda_published(x_N: Tensor) -> Launch:
    """Published as a first CUDA extension (source 2): each call allocates its result, and waits until the device is idle."""
    from kernelviz.ops.scale import published as kernels

    return kernels.bind_published(x_N, FACTOR)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalar(x_N: Tensor) -> Launch:
    """CUDA C++, one element per thread: every load and store moves 4 bytes (2 in half precision)."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_scalar(x_N, FACTOR)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16(x_N: Tensor) -> Launch:
    """CUDA C++, 16 bytes per thread: a quarter of the instructions for the same traffic."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_vec16(x_N, FACTOR)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16_unrolled(x_N: Tensor) -> Launch:
    """CUDA C++, four streaming 16-byte loads of a thread in flight before its stores: faster at 2^20, slower at 2^28."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_unrolled(x_N, FACTOR)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_adaptive(x_N: Tensor) -> Launch:
    """CUDA C++, one to four 16-byte vectors per thread by size; loads stream only while the L2 can hold the output."""
    from kernelviz.ops.scale import cuda as kernels

    return kernels.bind_adaptive(x_N, FACTOR)


VARIANTS = (
    torch_eager,
    cpp_extension,
    torch_compile,
    triton_block,
    triton_known_size,
    cuda_scalar,
    cuda_vec16,
    cuda_vec16_unrolled,
    cuda_adaptive,
    cuda_published,
)
