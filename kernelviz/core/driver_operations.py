"""Work of the driver that a tracer records beside kernels: copies and fills of memory, by the names of their records."""

from collections.abc import Iterable

from kernelviz.core.result import Kernel

MEMCPY, MEMSET = "memcpy", "memset"
"""The names of their records: those of the node types of a CUDA graph (CUDA Runtime API, `cudaGraphNodeType`)."""


def count_memsets(kernels: Iterable[Kernel]) -> int:
    """How many of these records of a call are fills of memory. Such a fill occupies the device and is a launch, but it computes
    nothing that could be fused.

    >>> count_memsets([Kernel(name="memset"), Kernel(name="gemm"), Kernel(name="memset_kernel")])
    1
    """
    return sum(kernel.name == MEMSET for kernel in kernels)
