"""The variants of `strided_copy`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_NS: Tensor) -> Launch:
    """Tensor.copy_ of a strided view into a buffer that was allocated before."""
    import torch

    out_N = torch.empty(x_NS.shape[0], dtype=x_NS.dtype, device=x_NS.device)
    column_N = x_NS[:, 0]
    return lambda: out_N.copy_(column_N)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_NS: Tensor) -> Launch:
    """torch.compile of the column's clone, on the elements' bits: on a GPU one Triton kernel, on a CPU vectorised C++."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    # As integers, for the same reason as in `copy`: the bits of a NaN stay as they are.
    bits = torch.int32 if x_NS.element_size() == 4 else torch.int16

    def column(x_NS: Tensor) -> Tensor:
        return torch.clone(x_NS[:, 0], memory_format=torch.contiguous_format)

    run = compiled(column, x_NS.view(bits))
    dtype = x_NS.dtype

    def launch() -> Tensor:
        result = run()
        assert not isinstance(result, tuple)
        return result.view(dtype)  # the same memory: no kernel

    return launch


@variant(backend="triton", needs=("triton", "cuda"))
def triton_block(x_NS: Tensor) -> Launch:
    """Triton compiled for the number of elements and the stride, up to 1024 elements per program."""
    from kernelviz.ops.copy import triton_strided as kernels

    return kernels.bind_strided(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_scalar(x_NS: Tensor) -> Launch:
    """CUDA C++, one element per thread: from 32 bytes of stride on, a warp's load takes 32 sectors of memory instead of 4."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_scalar(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",))
def cuda_vec16(x_NS: Tensor) -> Launch:
    """CUDA C++, loads the 16-byte vector around each element and selects that element: the same sectors, in a worse order."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_vec16(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_unrolled(x_NS: Tensor) -> Launch:
    """CUDA C++, four elements per thread, all loaded before the first is stored: faster as long as several share a sector."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_unrolled(x_NS)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_adaptive(x_NS: Tensor) -> Launch:
    """CUDA C++ by stride: a plain copy at 1, whole vectors or four elements per thread up to 16 bytes, then two; from 64, one."""
    from kernelviz.ops.copy import cuda as kernels

    return kernels.bind_strided_adaptive(x_NS)


STRIDED_VARIANTS = (
    torch_eager,
    torch_compile,
    triton_block,
    cuda_scalar,
    cuda_vec16,
    cuda_unrolled,
    cuda_adaptive,
)
