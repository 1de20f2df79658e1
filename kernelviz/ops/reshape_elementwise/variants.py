"""The variants of `reshape_elementwise` in the order of the ladder: two kernels, one kernel, then kernels of wider accesses."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


def contiguous_relu(x_MN: Tensor) -> Tensor:
    """relu of the transposed view for the compiler, which would keep the view's strides without `contiguous`."""
    return x_MN.t().relu().contiguous()


@variant(backend="torch")
def contiguous_then_op(x_MN: Tensor) -> Launch:
    """x.t().contiguous(), then relu: two kernels, twice the bytes."""
    return lambda: x_MN.t().contiguous().relu()


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """One torch kernel from the transposed view into a contiguous buffer: it reads with the stride of a row."""
    import torch

    m, n = x_MN.shape
    y_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    return lambda: torch.clamp_min(x_MN.t(), 0, out=y_NM)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of relu on the view with a contiguous result: inductor makes one kernel over both layouts."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(contiguous_relu, x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_stepwise(x_MN: Tensor) -> Launch:
    """CUDA C++, a transposition of 16-byte vectors, then relu: two kernels near the memory's bandwidth."""
    from kernelviz.ops.reshape_elementwise import stepwise

    return stepwise.bind_transposition_then_relu(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_fused(x_MN: Tensor) -> Launch:
    """Triton, squares of 128, 32 or 16: read along x, transposed by the compiler in shared memory, written along y."""
    from kernelviz.ops.reshape_elementwise import triton as kernels

    return kernels.bind_reshape(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_known_size(x_MN: Tensor) -> Launch:
    """Triton, compiled for the sizes: tiles of up to 1024 elements, along the shorter side first."""
    from kernelviz.ops.transpose import triton_known_size as kernels

    return kernels.bind_known_size(x_MN, relu=True)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_tile(x_MN: Tensor) -> Launch:
    """CUDA C++, tiles of 64 × 64 in shared memory with padded rows: whole lines on both sides, one element per access."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_tile(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_registers(x_MN: Tensor) -> Launch:
    """CUDA C++, no shared memory: a thread reads a square as 16-byte vectors, transposes it in registers and writes vectors."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_registers(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_squares(x_MN: Tensor) -> Launch:
    """CUDA C++, the same squares exchanged through swizzled shared memory: segments of 256 bytes on both sides."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_squares(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_vec16(x_MN: Tensor) -> Launch:
    """CUDA C++, 16-byte vectors for rows of any length: those that span two aligned vectors are combined in registers."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_vec16(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_interleave(x_MN: Tensor) -> Launch:
    """CUDA C++, up to 64 rows or columns: all in one tile of shared memory; if small, in registers; one as relu alone."""
    from kernelviz.ops.reshape_elementwise import cuda as kernels

    return kernels.bind_interleave(x_MN)


VARIANTS = (
    contiguous_then_op,
    torch_eager,
    torch_compile,
    cuda_stepwise,
    triton_fused,
    triton_known_size,
    cuda_tile,
    cuda_registers,
    cuda_squares,
    cuda_vec16,
    cuda_interleave,
)
