"""CUDA C++ kernels of `histogram`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
BINS = 256
MOST_ATOMICS = 2**26
"""Bytes that are counted one by one in L2: beyond, bytes of one value would keep the GPU busy for tenths of a second."""
MOST_BYTES_OF_A_BLOCK = 2**31
"""Counters of a block have 32 bits."""


def bind_global(x_N: Tensor) -> Launch:
    """One atomic a byte. Errors: BadField above 2^26 bytes, and as all here for a vector that is not contiguous."""
    if x_N.numel() > MOST_ATOMICS:
        raise BadField("size n", x_N.numel(), "one atomic a byte takes at most 2^26 bytes; choose cuda_shared")
    return _bind_zeroed("histogram_global", x_N, blocks=-(-x_N.numel() // 256))


def bind_shared(x_N: Tensor) -> Launch:
    """Counters of a block in shared memory, eight blocks of 256 threads an SM."""
    return _bind_zeroed("histogram_shared", x_N, blocks=min(multiprocessors(x_N.device) * 8, -(-x_N.numel() // 256)))


def _bind_zeroed(name: str, x_N: Tensor, *, blocks: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    counts = torch.empty(BINS, dtype=torch.int64, device=x_N.device)
    kernel = nvrtc.kernel(SOURCE, name)
    count = ctypes.c_longlong(x_N.numel())

    def launch() -> Tensor:
        counts.zero_()
        nvrtc.launch(kernel, blocks, 256, x_N.data_ptr(), counts.data_ptr(), count)
        return counts

    return launch


def bind_per_warp(x_N: Tensor, *, threads: int = 512, vectors: int = 2, blocks_a_multiprocessor: int = 4) -> Launch:
    """Counters of a warp in shared memory, 16-byte loads."""
    return _bind("histogram_per_warp", x_N, threads, vectors, blocks_a_multiprocessor)


def bind_per_lane(x_N: Tensor, *, threads: int = 1024, vectors: int = 2, blocks_a_multiprocessor: int = 2) -> Launch:
    """Counters of a lane in shared memory, 32 KiB a block, 16-byte loads."""
    return _bind("histogram_per_lane", x_N, threads, vectors, blocks_a_multiprocessor)


def _bind(name: str, x_N: Tensor, threads: int, vectors: int, blocks_a_multiprocessor: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    resident = multiprocessors(x_N.device) * blocks_a_multiprocessor
    if x_N.numel() // resident >= MOST_BYTES_OF_A_BLOCK:
        raise BadField("size n", x_N.numel(), "a block counts at most 2^31 bytes in 32 bits")
    blocks = max(1, min(resident, -(-x_N.numel() // (16 * threads))))
    counts = torch.zeros(BINS, dtype=torch.int64, device=x_N.device)
    ticket = torch.zeros(1, dtype=torch.int32, device=x_N.device)
    out = torch.empty(BINS, dtype=torch.int64, device=x_N.device)
    defines = {"THREADS": str(threads), "VECTORS": str(vectors)}
    kernel = nvrtc.kernel(SOURCE, name, defines)
    count = ctypes.c_longlong(x_N.numel())

    def launch() -> Tensor:
        # The addresses are read here, so that the closure keeps the tensors alive that only it owns.
        pointers = (t.data_ptr() for t in (x_N, counts, ticket, out))
        nvrtc.launch(kernel, blocks, threads, *pointers, count)
        return out

    return launch
