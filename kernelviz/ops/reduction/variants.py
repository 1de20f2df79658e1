"""The variants of `sum` and of `mean` in the order of the ladder, from one atomic per element to one launch at memory speed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, Variant, variant

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")
CLUSTER_TARGETS = ("sm_90", "sm_100", "sm_120")
ONE_BLOCK_MOST = 2**20
"""Elements that one SM reads in about 60 µs in fp32, twenty times as long as all SMs together."""
CLUSTER_MOST = 2**23
"""As many for each of the 8 SMs of a cluster."""


def sum_variants() -> tuple[Variant, ...]:
    """The variants of `sum`."""

    @variant(backend="torch")
    def torch_eager(x_N: Tensor) -> Launch:
        """Tensor.sum: on a GPU one kernel, whose last block adds up the sums of the others."""
        return lambda: x_N.sum(0, keepdim=True)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_N: Tensor) -> Launch:
        """torch.compile of sum: on a GPU inductor makes two Triton kernels, one for each pass."""
        from kernelviz.ops.kernels.inductor import compiled

        def total(x_N: Tensor) -> Tensor:
            return x_N.sum(0, keepdim=True)

        return compiled(total, x_N)

    return torch_eager, torch_compile, *_kernels(mean=False)


def mean_variants() -> tuple[Variant, ...]:
    """The variants of `mean`."""

    @variant(backend="torch")
    def torch_eager(x_N: Tensor) -> Launch:
        """Tensor.mean: on a GPU one kernel, whose last block adds up the sums of the others."""
        return lambda: x_N.mean(0, keepdim=True)

    @variant(backend="inductor", needs=("inductor",), slow_compile=True)
    def torch_compile(x_N: Tensor) -> Launch:
        """torch.compile of mean: on a GPU inductor makes two Triton kernels, one for each pass."""
        from kernelviz.ops.kernels.inductor import compiled

        def mean(x_N: Tensor) -> Tensor:
            return x_N.mean(0, keepdim=True)

        return compiled(mean, x_N)

    return torch_eager, torch_compile, *_kernels(mean=True)


def _kernels(*, mean: bool) -> tuple[Variant, ...]:
    """The variants with kernels of their own, which divide the sum by 1 or by the number of elements."""

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_atomic_per_element(x_N: Tensor) -> Launch:
        """CUDA C++, one atomic per element to the same fp32 number, so the atomics queue. At most 2^24 elements."""
        from kernelviz.ops.reduction import cuda as kernels

        return kernels.bind_atomic_per_element(x_N, x_N.numel() if mean else 1)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_atomic_per_warp(x_N: Tensor) -> Launch:
        """CUDA C++, five shuffles add up the numbers of a warp: a 32nd of the atomics."""
        from kernelviz.ops.reduction import cuda as kernels

        return kernels.bind_atomic_per_warp(x_N, x_N.numel() if mean else 1)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_atomic_per_block(x_N: Tensor) -> Launch:
        """CUDA C++, warps add up through shared memory: one atomic per block of 1024 threads."""
        from kernelviz.ops.reduction import cuda as kernels

        return kernels.bind_atomic_per_block(x_N, x_N.numel() if mean else 1)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_two_pass(x_N: Tensor) -> Launch:
        """CUDA C++, a fixed grid strides through the vector and a second kernel adds up the sums of blocks: no atomics."""
        from kernelviz.ops.reduction import cuda as kernels

        return kernels.bind_two_pass(x_N, x_N.numel() if mean else 1)

    @variant(backend="triton", needs=("triton", "cuda"))
    def triton_two_pass(x_N: Tensor) -> Launch:
        """Triton, as many programs as the GPU holds at once, then one program that adds up their sums."""
        from kernelviz.ops.reduction import triton as kernels

        return kernels.bind_two_pass(x_N, x_N.numel() if mean else 1)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda"),
        techniques=("vec16",),
        targets=EVERY_TARGET,
        largest={"n": ONE_BLOCK_MOST},
    )
    def cuda_one_block(x_N: Tensor) -> Launch:
        """CUDA C++, one block reads everything: no second stage, but one SM only. Few elements: for one size. At most 2^20."""
        from kernelviz.ops.reduction import one_block as kernels

        return kernels.bind_one_block(x_N, x_N.numel() if mean else 1)

    @variant(
        backend="cuda",
        needs=("nvrtc", "cuda", "sm_90"),
        techniques=("vec16", "cluster"),
        targets=CLUSTER_TARGETS,
        largest={"n": CLUSTER_MOST},
    )
    def cuda_cluster(x_N: Tensor) -> Launch:
        """CUDA C++, one cluster of 8 blocks reads everything and adds up the sums in shared memory. At most 2^23 elements."""
        from kernelviz.ops.reduction import one_block as kernels

        return kernels.bind_cluster(x_N, x_N.numel() if mean else 1)

    @variant(backend="cuda", needs=("nvrtc", "cuda"))
    def cuda_persistent(x_N: Tensor) -> Launch:
        """CUDA C++, one launch of a fixed grid, four 16-byte loads per thread in flight; the last block adds up the sums."""
        from kernelviz.ops.reduction import cuda as kernels

        return kernels.bind_persistent(x_N, x_N.numel() if mean else 1)

    @variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET)
    def cuda_flagged(x_N: Tensor) -> Launch:
        """CUDA C++, one launch of all SMs; the last block waits for flagged sums of the others: no fence and no atomics."""
        from kernelviz.ops.reduction import one_block as kernels

        return kernels.bind_flagged(x_N, x_N.numel() if mean else 1)

    return (
        cuda_atomic_per_element,
        cuda_atomic_per_warp,
        cuda_atomic_per_block,
        cuda_two_pass,
        triton_two_pass,
        cuda_one_block,
        cuda_cluster,
        cuda_persistent,
        cuda_flagged,
    )
