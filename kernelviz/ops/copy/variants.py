"""The variants of `copy`, in ladder order.

Each takes vectors that begin `o` bytes after an aligned address, or refuses them by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_N: Tensor, *, o: int = 0) -> Launch:
    """Tensor.copy_ into a buffer that was allocated before: on a GPU the driver's own device-to-device copy."""
    from kernelviz.ops.copy.offset import empty_at

    out_N = empty_at(x_N, o)
    return lambda: out_N.copy_(x_N)


# Inductor allocates the output itself, at an aligned address.
@variant(backend="inductor", needs=("inductor",), slow_compile=True, largest={"o": 0})
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile of clone, on the elements' bits: on a GPU one Triton kernel made by inductor, on a CPU vectorised C++."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    # As integers: inductor's kernels widen 16-bit floats to fp32 and round them back, which rewrites the bits of a NaN.
    # Not as x + 0, which turns -0.0 into 0.0.
    bits = torch.int32 if x_N.element_size() == 4 else torch.int16

    def clone(x_N: Tensor) -> Tensor:
        return x_N.clone()

    run = compiled(clone, x_N.view(bits))
    dtype = x_N.dtype

    def launch() -> Tensor:
        result = run()
        assert not isinstance(result, tuple)
        return result.view(dtype)  # the same memory: no kernel

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block(x_N: Tensor, *, o: int = 0) -> Launch:
    """Triton, 1024 elements per program at every size."""
    from kernelviz.ops.copy import triton as kernels
    from kernelviz.ops.copy import triton_offset

    return triton_offset.bind_block(x_N, o) if o else kernels.bind_block(x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_persistent(x_N: Tensor, *, o: int = 0) -> Launch:
    """Triton, as many programs as the GPU holds at once, each striding through the vector in blocks of 16 KiB."""
    from kernelviz.ops.copy import triton as kernels
    from kernelviz.ops.copy import triton_offset

    return triton_offset.bind_persistent(x_N, o) if o else kernels.bind_persistent(x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_known_size(x_N: Tensor, *, o: int = 0) -> Launch:
    """Triton, up to 2^20 elements compiled for their number: no mask, loads as wide as it allows; others as triton_block."""
    from kernelviz.ops.copy import triton_known_size as kernels
    from kernelviz.ops.copy import triton_offset

    return triton_offset.bind_block(x_N, o) if o else kernels.bind_known_size(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalar(x_N: Tensor, *, o: int = 0) -> Launch:
    """CUDA C++, one element per thread: every load and store moves 4 bytes (2 in half precision)."""
    from kernelviz.ops.copy import cuda as kernels
    from kernelviz.ops.copy import cuda_offset

    return cuda_offset.bind_scalar(x_N, o) if o else kernels.bind_scalar(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16(x_N: Tensor, *, o: int = 0) -> Launch:
    """CUDA C++, 16 bytes per thread: a quarter of the instructions for the same traffic."""
    from kernelviz.ops.copy import cuda as kernels
    from kernelviz.ops.copy import cuda_offset

    return cuda_offset.bind_vec16(x_N, o) if o else kernels.bind_vec16(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16_unrolled(x_N: Tensor, *, o: int = 0) -> Launch:
    """CUDA C++, four streaming 16-byte loads of a thread in flight before its stores: faster at 2^20, slower at 2^28."""
    from kernelviz.ops.copy import cuda as kernels
    from kernelviz.ops.copy import cuda_offset

    return cuda_offset.bind_unrolled(x_N, o) if o else kernels.bind_unrolled(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_adaptive(x_N: Tensor, *, o: int = 0) -> Launch:
    """CUDA C++, one to four 16-byte vectors per thread by size; loads stream only while the L2 can hold the output."""
    from kernelviz.ops.copy import cuda as kernels
    from kernelviz.ops.copy import cuda_offset

    return cuda_offset.bind_adaptive(x_N, o) if o else kernels.bind_adaptive(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda", "sm_90"), techniques=("bulk_copy",))
def cuda_bulk(x_N: Tensor, *, o: int = 0) -> Launch:
    """CUDA C++ for Hopper, bulk copies by the SM's copy engine (TMA): one thread copies 2 KiB, and nothing passes registers."""
    from kernelviz.ops.copy import cuda as kernels
    from kernelviz.ops.copy import cuda_offset

    return cuda_offset.bind_bulk(x_N, o) if o else kernels.bind_bulk(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_known_size(x_N: Tensor, *, o: int = 0) -> Launch:
    """CUDA C++, up to 512 KiB compiled for the size: few instructions, up to 16 bytes per thread; others as `cuda_adaptive`."""
    from kernelviz.ops.copy import cuda_offset, known_size

    return cuda_offset.bind_adaptive(x_N, o) if o else known_size.bind_known_size(x_N)


VARIANTS = (
    torch_eager,
    torch_compile,
    triton_block,
    triton_persistent,
    triton_known_size,
    cuda_scalar,
    cuda_vec16,
    cuda_vec16_unrolled,
    cuda_bulk,
    cuda_adaptive,
    cuda_known_size,
)
