"""CUDA C++ kernels of `sum` and `mean` by one block, one cluster, or blocks of which the last waits, bound to a vector."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
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
KNOWN_SIZE_BYTES = 128 * 1024
"""Of a vector for whose size a kernel is compiled: 8 loads for each of 1024 threads."""
SERIAL = 16
"""Elements that one thread loads: adding them up takes as long as the shuffles of a warp."""
LANES_OF_ELEMENTS = 256
"""Elements that a warp loads one by one, eight a thread."""
LOADS_IN_FLIGHT, FEWEST_THREADS = 5, 128
MOST_VECTORS = 8
"""16-byte vectors of a thread in flight: 128 KiB of a block, in 32 registers a thread."""


def threads_and_vectors(n: int, itemsize_bytes: int, blocks: int = 1) -> tuple[int, int]:
    """Threads of a block, and the 16-byte vectors that each has in flight: one for each thread while that is enough.

    >>> threads_and_vectors(1, 2), threads_and_vectors(949, 4), threads_and_vectors(36610, 2), threads_and_vectors(2**20, 4)
    ((32, 1), (256, 1), (1024, 8), (1024, 8))
    """
    vectors = -(-n * itemsize_bytes // (VEC16_BYTES * blocks))
    threads = min(MOST_THREADS, -(-vectors // WARP) * WARP)
    of_thread = -(-vectors // threads)
    return threads, min(MOST_VECTORS, 1 << (of_thread - 1).bit_length())


@dataclass(frozen=True, slots=True)
class KnownSize:
    """Threads that have elements, a power of two, and elements of a load."""

    threads: int
    width: int

    @property
    def kernel(self) -> str:
        """One thread takes fewer instructions than one of a warp."""
        return "sum_known_size_serial" if self.threads == 1 else "sum_known_size"


def known_size(n: int, itemsize_bytes: int) -> KnownSize | None:
    """The shape of the kernel that is compiled for n elements; None for more than 128 KiB.

    One thread loads up to 16 elements, one warp 256, one element a load. Beyond, loads have 16 bytes, and a thread at most
    five (eight of 1024 threads), of at least 128 threads: more warps take longer to add up, and fewer have less in flight.
    H200, 8680 elements of bf16: 1.79 us with 128 threads, 1.57 with 256, 1.65 with 1024; 2.00 by the kernel for any size.

    >>> known_size(16, 2), known_size(17, 2)
    (KnownSize(threads=1, width=8), KnownSize(threads=32, width=1))
    >>> known_size(1970, 2), known_size(8680, 2)
    (KnownSize(threads=128, width=8), KnownSize(threads=256, width=8))
    >>> known_size(2**15, 4), known_size(2**15 + 1, 4)
    (KnownSize(threads=1024, width=4), None)
    """
    if n * itemsize_bytes > KNOWN_SIZE_BYTES:
        return None
    if n <= SERIAL:
        return KnownSize(1, VEC16_BYTES // itemsize_bytes)
    if n <= LANES_OF_ELEMENTS:
        return KnownSize(WARP, 1)
    width = VEC16_BYTES // itemsize_bytes
    loads = n // width
    threads = 1 << (-(-loads // LOADS_IN_FLIGHT) - 1).bit_length()
    return KnownSize(min(MOST_THREADS, max(FEWEST_THREADS, threads)), width)


FLAGGED_THREADS, FLAGGED_BLOCKS = 512, 2
"""Of the kernel in which one block waits: threads of a block, and blocks an SM."""


def flagged_blocks(n: int, itemsize_bytes: int, count: int) -> tuple[int, int]:
    """Blocks on a GPU of `count` SMs, and the 16-byte vectors that each thread has in flight.

    >>> flagged_blocks(1, 2, 132), flagged_blocks(300_000, 4, 132), flagged_blocks(2_974_429, 4, 132)
    ((1, 1), (147, 1), (264, 8))
    """
    vectors = -(-n * itemsize_bytes // VEC16_BYTES)
    blocks = min(FLAGGED_BLOCKS * count, -(-vectors // FLAGGED_THREADS))
    of_thread = -(-vectors // (blocks * FLAGGED_THREADS))
    return blocks, min(MOST_VECTORS, 1 << (of_thread - 1).bit_length())


def bind_flagged(x_N: Tensor, divisor: int) -> Launch:
    """All SMs read a part; the last block waits for their sums. Errors: BadField for a vector that is not contiguous."""
    import torch

    require_contiguous(x_N=x_N)
    blocks, vectors = flagged_blocks(x_N.numel(), x_N.element_size(), multiprocessors(x_N.device))
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    slots = torch.zeros(blocks, dtype=torch.int64, device=x_N.device)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype), "VECTORS": str(vectors)}
    kernel = nvrtc.kernel(SOURCE, "sum_flagged", defines)
    arguments = (ctypes.c_longlong(x_N.numel()), ctypes.c_float(divisor))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (x_N.data_ptr(), slots.data_ptr(), out_1.data_ptr())
        nvrtc.launch(kernel, blocks, FLAGGED_THREADS, *pointers, *arguments)
        return out_1

    return launch


def bind_one_block(x_N: Tensor, divisor: int) -> Launch:
    """One block reads the whole vector, by a kernel that is compiled for its size up to 128 KiB. Errors: BadField for a vector
    that is not contiguous."""
    import torch

    require_contiguous(x_N=x_N)
    known = known_size(x_N.numel(), x_N.element_size())
    if known is None or not aligned(x_N):
        return _bind("sum_one_block", x_N, divisor, blocks=1)
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    shape = {"SIZE": x_N.numel(), "THREADS": known.threads, "OF_LOAD": known.width, "DIVISOR": divisor}
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype)} | {name: str(value) for name, value in shape.items()}
    kernel = nvrtc.kernel(KNOWN_SIZE, known.kernel, defines)

    def launch() -> Tensor:
        nvrtc.launch(kernel, 1, known.threads, x_N.data_ptr(), out_1.data_ptr())
        return out_1

    return launch


def bind_cluster(x_N: Tensor, divisor: int) -> Launch:
    """One cluster reads the whole vector. Errors: BadField for a vector that is not contiguous."""
    return _bind("sum_cluster", x_N, divisor, blocks=CLUSTER)


def _bind(name: str, x_N: Tensor, divisor: int, *, blocks: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    threads, vectors = threads_and_vectors(x_N.numel(), x_N.element_size(), blocks)
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    defines = {"ELEMENT": nvrtc.element_type(x_N.dtype), "VECTORS": str(vectors)}
    kernel = nvrtc.kernel(SOURCE, name, defines)
    arguments = (ctypes.c_longlong(x_N.numel()), ctypes.c_float(divisor))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        nvrtc.launch(kernel, blocks, threads, x_N.data_ptr(), out_1.data_ptr(), *arguments, cluster=blocks)
        return out_1

    return launch
