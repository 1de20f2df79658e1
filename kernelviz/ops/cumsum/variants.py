"""The variants of `cumsum`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")
ONE_BLOCK_MOST = 2**20
"""Elements that one SM reads and writes in about 120 µs in fp32."""
CLUSTER_MOST = 2**18
"""Elements of 2 bytes that the 8 blocks of a cluster hold in registers; of 4 bytes they hold half as many."""


@variant(backend="torch")
def torch_eager(x_N: Tensor) -> Launch:
    """torch.cumsum: on a GPU CUB's scan, one pass with look-back; half precision is added with dtype=float32, then rounded."""
    import torch

    if x_N.dtype == torch.float32:
        return lambda: torch.cumsum(x_N, 0)
    return lambda: torch.cumsum(x_N, 0, dtype=torch.float32).to(x_N.dtype)


@variant(backend="torch", needs=("cuda",), dtypes=("fp16", "bf16"), only_when_named=True)
def torch_as_stored(x_N: Tensor) -> Launch:
    """torch.cumsum in half precision: on a GPU each sum is rounded to that format, so the correctness check fails."""
    import torch

    return lambda: torch.cumsum(x_N, 0)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_N: Tensor) -> Launch:
    """torch.compile of cumsum: on a GPU inductor makes a Triton scan with look-back, a tile at a time."""
    from kernelviz.ops.kernels.inductor import compiled

    def cumsum(x_N: Tensor) -> Tensor:
        return x_N.cumsum(0)

    return compiled(cumsum, x_N)


@variant(backend="triton", needs=("triton", "cuda"))
def triton_three_kernels(x_N: Tensor) -> Launch:
    """Triton, sums of tiles, then the sum before each tile, then scans of tiles: the vector is read twice."""
    from kernelviz.ops.cumsum import triton as kernels

    return kernels.bind_three_kernels(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_three_kernels(x_N: Tensor) -> Launch:
    """CUDA C++, the same three kernels with 16-byte loads: 3 N e bytes instead of 2 N e, so two thirds of a copy at best."""
    from kernelviz.ops.cumsum import cuda as kernels

    return kernels.bind_three_kernels(x_N)


@variant(
    backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET, largest={"n": ONE_BLOCK_MOST}
)
def cuda_one_block(x_N: Tensor) -> Launch:
    """CUDA C++, one block scans everything: no sums of other blocks, one SM only. Few elements: for one size. At most 2^20."""
    from kernelviz.ops.cumsum import one_block as kernels

    return kernels.bind_one_block(x_N)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    techniques=("vec16", "cluster"),
    targets=("sm_90", "sm_100", "sm_120"),
    largest={"n": CLUSTER_MOST},
)
def cuda_cluster(x_N: Tensor) -> Launch:
    """CUDA C++, one cluster of 8 blocks, which exchange the sums of their tiles through shared memory. At most 512 KiB."""
    from kernelviz.ops.cumsum import one_block as kernels

    return kernels.bind_cluster(x_N)


@variant(backend="cuda", needs=("nvrtc", "cuda"))
def cuda_look_back(x_N: Tensor) -> Launch:
    """CUDA C++, one pass: a tile publishes its sum at once and adds up the sums that earlier tiles have published."""
    from kernelviz.ops.cumsum import cuda as kernels

    return kernels.bind_look_back(x_N)
