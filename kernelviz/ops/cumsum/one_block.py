"""CUDA C++ kernels of `cumsum` of few elements, by one block or one cluster, bound to a vector."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "one_block.cu"
KNOWN_SIZE = Path(__file__).parent / "known_size.cu"
WARP = 32
MOST_THREADS = 1024
CLUSTER = 8
"""Blocks of the cluster: the largest that every GPU with clusters has."""
KNOWN_SIZE_THREADS = 512
"""Of the block for whose size a kernel is compiled; each adds up the sums of up to 15 warps."""
SERIAL = 16
"""Elements up to which one thread has all: an estimate. H200, 16 of fp32: 1.12 us by the lanes of a warp, 1.05 by inductor's
kernel; the sum of as many takes 0.96 by one thread."""
THREADS_OF_ELEMENTS, THREADS_OF_VECTORS, ADJACENT = 256, 128, 4
MOST_VECTORS = 4
"""16-byte vectors of a thread: a tile of 64 KiB, whose vectors and sums fit into 64 registers a thread."""


def threads_and_vectors(n: int, itemsize_bytes: int, blocks: int = 1) -> tuple[int, int]:
    """Threads of a block, and the 16-byte vectors of each: one for each thread while that is enough.

    >>> threads_and_vectors(1, 2), threads_and_vectors(949, 4), threads_and_vectors(11622, 4), threads_and_vectors(2**20, 4)
    ((32, 1), (256, 1), (1024, 4), (1024, 4))
    """
    vectors = -(-n * itemsize_bytes // (VEC16_BYTES * blocks))
    threads = min(MOST_THREADS, -(-vectors // WARP) * WARP)
    of_thread = -(-vectors // threads)
    return threads, min(MOST_VECTORS, 1 << (of_thread - 1).bit_length())


def known_size(n: int, itemsize_bytes: int) -> int | None:
    """Adjacent elements of a thread of the kernel that is compiled for n elements; None where 16 bytes for each of 512 threads
    are not enough.

    Up to 256 threads have one element, and more elements are shared by at most 128 threads with at least four, while 16 bytes
    each are enough: a thread adds up the sums of all warps before its own (H200, fp16, 1000 elements: 1.35 us with four
    elements, 1.90 with one; fp32, 262 and 272 elements: 1.18 and 1.31 with two, 1.11 and 1.23 in torch.compile, which has four
    warps at these sizes). That 16 bits take eight from 513 elements on is an estimate.

    >>> [known_size(n, 2) for n in (1, 256, 257, 512, 1000, 4096, 4097)], known_size(1000, 4)
    ([1, 1, 4, 4, 8, 8, None], 4)
    """
    most = VEC16_BYTES // itemsize_bytes
    if n > most * KNOWN_SIZE_THREADS:
        return None
    if n <= THREADS_OF_ELEMENTS:
        return 1
    return min(most, max(ADJACENT, 1 << (-(-n // THREADS_OF_VECTORS) - 1).bit_length()))


def kernel_and_threads(n: int, of_thread: int) -> tuple[str, int]:
    """The name of the kernel that is compiled for n elements, of which a thread of several has so many, and its threads.

    >>> kernel_and_threads(16, 1), kernel_and_threads(17, 1), kernel_and_threads(1000, 4)
    (('cumsum_known_size_serial', 1), ('cumsum_known_size', 32), ('cumsum_known_size', 256))
    """
    return ("cumsum_known_size_serial", 1) if n <= SERIAL else ("cumsum_known_size", -(-n // (of_thread * WARP)) * WARP)


def bind_one_block(x_N: Tensor) -> Launch:
    """One block, one pass over a contiguous vector, by a kernel that is compiled for its size where 512 threads are enough.
    Raises BadField if not contiguous."""
    import torch

    require_contiguous(x_N=x_N)
    n = x_N.numel()
    width = known_size(n, x_N.element_size())
    if width is None or not aligned(x_N):
        return _bind("cumsum_one_block", x_N, blocks=1)
    out_N = torch.empty_like(x_N)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype), "SIZE": str(n), "OF_THREAD": str(width)}
    name, threads = kernel_and_threads(n, width)
    kernel = nvrtc.kernel(KNOWN_SIZE, name, defines)

    def launch() -> Tensor:
        nvrtc.launch(kernel, 1, threads, x_N.data_ptr(), out_N.data_ptr())
        return out_N

    return launch


def bind_cluster(x_N: Tensor) -> Launch:
    """One cluster, one tile a block. Errors: BadField for a vector that is not contiguous or has more than 512 KiB."""
    most = CLUSTER * MOST_THREADS * MOST_VECTORS * VEC16_BYTES // x_N.element_size()
    if x_N.numel() > most:
        raise BadField("size n", x_N.numel(), f"the blocks of a cluster hold {most} elements; choose cuda_look_back")
    return _bind("cumsum_cluster", x_N, blocks=CLUSTER)


def _bind(name: str, x_N: Tensor, *, blocks: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    threads, vectors = threads_and_vectors(x_N.numel(), x_N.element_size(), blocks)
    out_N = torch.empty_like(x_N)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype), "VECTORS": str(vectors)}
    kernel = nvrtc.kernel(SOURCE, name, defines)
    how = (ctypes.c_longlong(x_N.numel()), ctypes.c_bool(aligned(x_N)))

    def launch() -> Tensor:
        # The addresses are read here, so that the closure keeps the tensors alive that only it owns.
        nvrtc.launch(kernel, blocks, threads, x_N.data_ptr(), out_N.data_ptr(), *how, cluster=blocks)
        return out_N

    return launch
