"""The variants of `histogram`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.histogram.reference import BINS

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.bincount, which sends the number of bins to the host first, so every call waits for the host."""
    import torch

    return lambda: torch.bincount(x_N, minlength=BINS)


@variant(backend="torch")
def scatter_add_eager(x_N: Tensor) -> Launch:
    """Tensor.scatter_add_ of ones, with the bytes as 64-bit indices: 17 bytes of traffic for each byte, all atomics in L2."""
    import torch

    out = torch.empty(BINS, dtype=torch.int64, device=x_N.device)
    ones_N = torch.ones(1, dtype=torch.int64, device=x_N.device).expand(x_N.shape)
    return lambda: out.zero_().scatter_add_(0, x_N.long(), ones_N)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile of scatter_add: inductor reads the bytes once and issues one atomic in L2 for each."""
    import torch

    from kernelviz.ops.kernels.inductor import compiled

    def histogram(x_N: Tensor) -> Tensor:
        zeros = torch.zeros(BINS, dtype=torch.int64, device=x_N.device)
        return zeros.scatter_add(0, x_N.long(), torch.ones_like(x_N, dtype=torch.int64))

    return compiled(histogram, x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_persistent(x_N: Tensor) -> Launch:
    """Triton, tl.histogram of 8 KiB at a time; as many programs as the GPU holds at once add their counts at the end."""
    from kernelviz.ops.histogram import triton as kernels

    return kernels.bind_histogram(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_global(x_N: Tensor) -> Launch:
    """CUDA C++, one atomic in L2 per byte: atomics to the same counter queue. Refuses more than 2^26 bytes."""
    from kernelviz.ops.histogram import cuda as kernels

    return kernels.bind_global(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_shared(x_N: Tensor) -> Launch:
    """CUDA C++, counters of a block in shared memory; bytes are loaded one by one. One block, in one launch, counts few bytes."""
    from kernelviz.ops.histogram import one_block as kernels

    return kernels.bind_shared(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_per_warp(x_N: Tensor) -> Launch:
    """CUDA C++, 16-byte loads and counters for each warp: lanes still collide where their bytes are equal."""
    from kernelviz.ops.histogram import cuda as kernels

    return kernels.bind_per_warp(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_per_lane(x_N: Tensor) -> Launch:
    """CUDA C++, counters for each lane in its own bank: a warp's atomics never collide."""
    from kernelviz.ops.histogram import cuda as kernels

    return kernels.bind_per_lane(x_N)
