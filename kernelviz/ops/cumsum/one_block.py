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
WARP = 32
MOST_THREADS = 1024
CLUSTER = 8
"""Blocks of the cluster: the largest that every GPU with clusters has."""
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


def bind_one_block(x_N: Tensor) -> Launch:
    """One block, one pass over a contiguous vector; raises BadField if not contiguous."""
    return _bind("cumsum_one_block", x_N, blocks=1)


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
