"""The variants of `column_sum` in the order of the ladder: one thread or program per column, then parts of the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")
MOST_FEW_ROWS = 2**16
"""A thread adds up all rows of its columns: 30 million of three columns take a second on an H200."""
PERIODIC_MOST = 512
"""Columns of which the vectors of 512 threads are always whole rows together."""


def column_sum(x_MN: Tensor) -> Tensor:
    """What is compiled."""
    return x_MN.sum(0)


@variant(backend="torch")
def torch_eager(x_MN: Tensor) -> Launch:
    """Tensor.sum along columns: one kernel on a GPU."""
    return lambda: x_MN.sum(0)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_MN: Tensor) -> Launch:
    """torch.compile of sum: inductor makes two Triton kernels for many rows, one for few."""
    from kernelviz.ops.kernels.inductor import compiled

    return compiled(column_sum, x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_column_per_thread(x_MN: Tensor) -> Launch:
    """CUDA C++, one thread per column: its loads are coalesced, but few columns are few threads, and memory is not busy."""
    from kernelviz.ops.column_reduction import cuda as kernels

    return kernels.bind_per_thread(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), targets=EVERY_TARGET)
def triton_columns(x_MN: Tensor) -> Launch:
    """Triton, one program per 128 columns, which walks down all rows in blocks of 16 KiB."""
    from kernelviz.ops.column_reduction import triton as kernels

    return kernels.bind_columns(x_MN)


@variant(backend="triton", needs=("triton", "cuda"), targets=EVERY_TARGET)
def triton_split(x_MN: Tensor) -> Launch:
    """Triton, the rows in as many parts as fill the GPU; a second launch adds up the sums of the parts."""
    from kernelviz.ops.column_reduction import triton as kernels

    return kernels.bind_split(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_atomics(x_MN: Tensor) -> Launch:
    """CUDA C++, parts of the rows, 16 bytes per load; each block adds its sums by atomics: three launches, no fixed order."""
    from kernelviz.ops.column_reduction import cuda as kernels

    return kernels.bind_atomics(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_split(x_MN: Tensor) -> Launch:
    """CUDA C++, parts of the rows, 16 bytes per load; the last block of a strip adds up their sums: one launch, fixed order."""
    from kernelviz.ops.column_reduction import cuda as kernels

    return kernels.bind_split(x_MN)


@variant(
    backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET, largest={"m": MOST_FEW_ROWS}
)
def cuda_few_rows(x_MN: Tensor) -> Launch:
    """CUDA C++, one thread per vector of columns, up to 16 bytes, with several rows in flight: one pass, for few rows."""
    from kernelviz.ops.column_reduction import vectors as kernels

    return kernels.bind_few_rows(x_MN)


@variant(
    backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET, largest={"n": PERIODIC_MOST}
)
def cuda_periodic(x_MN: Tensor) -> Launch:
    """CUDA C++, the matrix as one vector, 16 bytes per load at strides that are multiples of n elements: at most 512 columns."""
    from kernelviz.ops.column_reduction import vectors as kernels

    return kernels.bind_periodic(x_MN)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    techniques=("vec16", "cluster"),
    targets=("sm_90", "sm_100", "sm_120"),
    largest={"n": PERIODIC_MOST},
)
def cuda_cluster(x_MN: Tensor) -> Launch:
    """CUDA C++, as cuda_periodic, but matrices up to 512 KiB by one cluster: blocks exchange sums by shared memory."""
    from kernelviz.ops.column_reduction import vectors as kernels

    return kernels.bind_cluster(x_MN)


@variant(backend="cuda", needs=("nvrtc", "cuda"), techniques=("vec16",), targets=EVERY_TARGET)
def cuda_shifted(x_MN: Tensor) -> Launch:
    """CUDA C++, as cuda_split, but also rows that start within a vector are read 16 bytes per load, eight loads in flight."""
    from kernelviz.ops.column_reduction import vectors as kernels

    return kernels.bind_shifted(x_MN)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    techniques=("vec16", "cluster"),
    targets=("sm_90", "sm_100", "sm_120"),
)
def cuda_strips(x_MN: Tensor) -> Launch:
    """CUDA C++, one pass: as many strips of columns as SMs, each with all rows in a block or cluster; others as cuda_shifted."""
    from kernelviz.ops.column_reduction import vectors as kernels

    return kernels.bind_strips(x_MN)


VARIANTS = (
    torch_eager,
    torch_compile,
    cuda_column_per_thread,
    triton_columns,
    triton_split,
    cuda_atomics,
    cuda_split,
    cuda_few_rows,
    cuda_periodic,
    cuda_cluster,
    cuda_shifted,
    cuda_strips,
)
