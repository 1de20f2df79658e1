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
CLUSTER_BYTES, PART_BYTES = 512 * 1024, 256 * 1024
"""Most bytes of a matrix of few columns that one cluster sums, and of those that its shared memory has room for at once; a
block of larger ones has two parts, one after the other. H200: 137 rows of 4 fp32 take 1.18 us in a cluster, 180 of 47 (34 KB)
1.88, 8192 of 4 (131 KB) 2.32; 17,064 of 8 bf16 (273 KB) by periodic blocks 5.05, and 4.26 in torch.compile. The line through
the times of clusters reaches 5 us at 700 KB. The first limit is an estimate."""
CLUSTER, CLUSTER_THREADS, ONE_BLOCK_VECTORS = 8, 1024, 512
"""Blocks of the cluster, as many as every GPU with clusters has; most threads of one; vectors that one block sums alone."""


@dataclass(frozen=True, slots=True)
class PeriodicCluster:
    """Blocks of the cluster that sums a matrix, their threads, the 16-byte vectors of each part, whole rows together, and the
    parts of a block."""

    blocks: int
    threads: int
    block_vectors: int
    parts: int = 1

    def defines(self, m: int, n: int, shift: int) -> dict[str, str]:
        """What the kernel is compiled with."""
        size = {"SIZE": m * n, "N": n, "SHIFT": shift}
        shape = {"CLUSTER": self.blocks, "THREADS": self.threads, "PARTS": self.parts}
        numbers = size | shape | {"BLOCK_VECTORS": self.block_vectors}
        return {name: str(value) for name, value in numbers.items()}


def periodic_cluster(m: int, n: int, itemsize_bytes: int, shift: int) -> PeriodicCluster | None:
    """A cluster for m rows of n columns; None for more than 512 KiB or 256 columns.

    `shift`: elements by which the matrix starts behind a multiple of 16 bytes. A thread has one vector, or two to three of larger
    matrices: a block has whole rows.

    >>> periodic_cluster(4864, 8, 2, 0), periodic_cluster(100, 3, 4, 0)
    (PeriodicCluster(blocks=8, threads=608, block_vectors=608, parts=1), PeriodicCluster(blocks=1, threads=96, block_vectors=75, \
parts=1))
    >>> periodic_cluster(2**17, 1, 4, 0), periodic_cluster(2**18, 1, 4, 0)
    (PeriodicCluster(blocks=8, threads=1024, block_vectors=2048, parts=2), None)
    """
    if m * n * itemsize_bytes > CLUSTER_BYTES or n > MOST_COLUMNS:
        return None
    width = VEC16_BYTES // itemsize_bytes
    period = n // math.gcd(n, width)
    vectors = -(-(m * n + shift) // width)
    blocks = 1 if vectors <= ONE_BLOCK_VECTORS else CLUSTER
    parts = -(-m * n * itemsize_bytes // PART_BYTES)
    block_vectors = -(-vectors // (blocks * parts * period)) * period
    of_thread = -(-block_vectors // CLUSTER_THREADS)
    threads = -(-max(-(-block_vectors // of_thread), n) // WARP) * WARP
    return PeriodicCluster(blocks, threads, block_vectors, parts)


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
