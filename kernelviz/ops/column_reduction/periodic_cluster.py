"""CUDA C++ kernel of `column_sum` of a small matrix of few columns by one cluster, bound to matrices."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "periodic_cluster.cu"
WARP = 32
MOST_COLUMNS = 256
CLUSTER_BYTES = 256 * 1024
"""Most bytes of a matrix of few columns that one cluster sums."""
CLUSTER, CLUSTER_THREADS, ONE_BLOCK_VECTORS = 8, 1024, 512
"""Blocks of the cluster, as many as every GPU with clusters has; most threads of one; vectors that one block sums alone."""


@dataclass(frozen=True, slots=True)
class PeriodicCluster:
    """Blocks of the cluster that sums a matrix, their threads, and the 16-byte vectors of each, whole rows together."""

    blocks: int
    threads: int
    block_vectors: int

    def defines(self, m: int, n: int, shift: int) -> dict[str, str]:
        """What the kernel is compiled with."""
        size = {"SIZE": m * n, "N": n, "SHIFT": shift}
        shape = {"CLUSTER": self.blocks, "THREADS": self.threads, "BLOCK_VECTORS": self.block_vectors}
        return {name: str(value) for name, value in (size | shape).items()}


def periodic_cluster(m: int, n: int, itemsize_bytes: int, shift: int) -> PeriodicCluster | None:
    """A cluster for m rows of n columns; None for more than 256 KiB or 256 columns.

    `shift`: elements by which the matrix starts behind a multiple of 16 bytes. A thread has one vector, or two to three of larger
    matrices: a block has whole rows.

    >>> periodic_cluster(4864, 8, 2, 0), periodic_cluster(100, 3, 4, 0)
    (PeriodicCluster(blocks=8, threads=608, block_vectors=608), PeriodicCluster(blocks=1, threads=96, block_vectors=75))
    >>> periodic_cluster(2**17, 1, 2, 0), periodic_cluster(2**17, 1, 4, 0)
    (PeriodicCluster(blocks=8, threads=1024, block_vectors=2048), None)
    """
    if m * n * itemsize_bytes > CLUSTER_BYTES or n > MOST_COLUMNS:
        return None
    width = VEC16_BYTES // itemsize_bytes
    period = n // math.gcd(n, width)
    vectors = -(-(m * n + shift) // width)
    blocks = 1 if vectors <= ONE_BLOCK_VECTORS else CLUSTER
    block_vectors = -(-vectors // (blocks * period)) * period
    of_thread = -(-block_vectors // CLUSTER_THREADS)
    threads = -(-max(-(-block_vectors // of_thread), n) // WARP) * WARP
    return PeriodicCluster(blocks, threads, block_vectors)


def bind_periodic_cluster(x_MN: Tensor, tile: PeriodicCluster, shift: int) -> Launch:
    """One launch of one cluster. `shift`: as in `periodic_cluster`."""
    import torch

    m, n = x_MN.shape
    out_N = torch.empty(n, dtype=x_MN.dtype, device=x_MN.device)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines(m, n, shift)}
    kernel = nvrtc.kernel(SOURCE, "column_periodic_cluster", defines, cluster=tile.blocks)

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = x_MN.data_ptr(), out_N.data_ptr()
        nvrtc.launch(kernel, tile.blocks, tile.threads, *pointers, cluster=tile.blocks)
        return out_N

    return launch
