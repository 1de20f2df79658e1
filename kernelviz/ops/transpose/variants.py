"""The variants of `transpose` in the order of the ladder: element by element, tiles in shared memory, 16-byte vectors, TMA."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """Tensor.copy_ of x.t() into an allocated buffer: the kernel of x.t().contiguous() without the allocation."""
    import torch

    out_NM = torch.empty((x_MN.shape[1], x_MN.shape[0]), dtype=x_MN.dtype, device=x_MN.device)
    return lambda: out_NM.copy_(x_MN.t())


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of the clone of x.t(), on the elements' bits: inductor's tiled Triton kernel on a GPU."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    def transposed(x_MN: Tensor) -> Tensor:
        # A clone, because x.t().contiguous() of one row or column is the input's own memory.
        return torch.clone(x_MN.t(), memory_format=torch.contiguous_format)

    # As integers, because inductor widens 16-bit floats to fp32 and rounds them back, which changes the bits of a NaN.
    transpose_bits = compiled(transposed, x_MN.view(torch.int32 if x_MN.element_size() == 4 else torch.int16))
    dtype = x_MN.dtype

    def launch() -> Tensor:
        result = transpose_bits()
        assert not isinstance(result, tuple)
        return result.view(dtype)  # the same memory: no kernel

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_tile(x_MN: Tensor) -> Launch:
    """Triton, one tile a program; the compiler exchanges it through shared memory."""
    from kernelviz.ops.transpose import triton as kernels

    return kernels.bind_tile(x_MN)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_known_size(x_MN: Tensor) -> Launch:
    """Triton, compiled for the sizes: tiles of up to 1024 elements, along the shorter side first."""
    from kernelviz.ops.transpose import triton_known_size as kernels

    return kernels.bind_known_size(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_naive(x_MN: Tensor) -> Launch:
    """CUDA C++, one element per thread: a warp's loads along a row are one line, its stores down a column are 32 sectors."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_elements("transpose_naive", x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_shared_tile(x_MN: Tensor) -> Launch:
    """CUDA C++, tiles of 32 × 32 through shared memory: whole lines both ways, but a column of the tile lies in one bank."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_elements("transpose_tile", x_MN, padding=0)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_padded_tile(x_MN: Tensor) -> Launch:
    """CUDA C++, the same with rows of 33 elements: a column of the tile lies in 32 banks."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_elements("transpose_tile", x_MN, padding=1)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16(x_MN: Tensor) -> Launch:
    """CUDA C++, 16-byte vectors both ways: blocks transposed in registers, then exchanged through swizzled shared memory."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_vec16(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16_small(x_MN: Tensor) -> Launch:
    """CUDA C++, the same with tiles of 64 threads: four times as many tiles, so that fewer SMs are idle at the end."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_vec16(x_MN, tile=kernels.SMALL_TILE)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_interleave(x_MN: Tensor) -> Launch:
    """CUDA C++, up to 64 rows or columns: all in one tile of shared memory; if small, in registers; one as a copy."""
    from kernelviz.ops.kernels import interleave
    from kernelviz.ops.transpose import cuda, one_row

    return one_row.bind_one_row(x_MN) or interleave.bind_interleave(x_MN) or cuda.bind_vec16(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("tma",))
def cuda_tma(x_MN: Tensor) -> Launch:
    """CUDA C++, TMA loads and stores the tiles: one thread issues the copies; rows must be whole 16-byte vectors."""
    from kernelviz.ops.transpose import cuda as kernels

    return kernels.bind_tma(x_MN)


VARIANTS = (
    torch_eager,
    torch_compile,
    triton_tile,
    triton_known_size,
    cuda_naive,
    cuda_shared_tile,
    cuda_padded_tile,
    cuda_vec16,
    cuda_vec16_small,
    cuda_interleave,
    cuda_tma,
)
