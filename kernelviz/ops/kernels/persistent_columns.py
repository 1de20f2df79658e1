"""Tiles of persistent clusters, whose threads keep their columns of every row (`headers/persistent_*.cuh`).

They are the fastest of those that were tried on an H200 (docs/kernels.md, "What was tried").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_tiles import CLUSTER, LONGEST_ROW_VECTORS, vectors_of_row

if TYPE_CHECKING:
    from torch import Tensor

VEC16_BYTES = 16
LANES = 512
"""Threads of a block that has its SM alone. Rows of 131,072 in bf16: softmax takes 71.6 us with 512 threads, 74.4 with 1024."""
MOST_VECTORS = 8
"""16-byte vectors of a row that a thread may have."""
MOST_CLUSTER = 16
"""Blocks of a cluster, on GPUs that grant more than CLUSTER."""
SHORTEST_ROW_VECTORS = 128
"""Of shorter rows several share a block, in other kernels."""


@dataclass(frozen=True, slots=True)
class ColumnsTile:
    """Threads of a block, 16-byte vectors of a row a thread, blocks that share a row, rows in shared memory, blocks an SM."""

    lanes: int
    vectors: int
    cluster: int
    stages: int
    blocks: int = 1

    @property
    def shared_bytes(self) -> int:
        return self.lanes * self.vectors * self.stages * VEC16_BYTES

    def defines(self, row_vectors: int) -> dict[str, str]:
        """Macros for the kernels of `headers/persistent_columns.cuh` and rows of that many vectors."""
        return {
            "ROW_LANES": str(self.lanes),
            "ROW_VECTORS": str(self.vectors),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_STAGES": str(self.stages),
            "ROW_BLOCKS": str(self.blocks),
            "ROW_FULL": "true" if row_vectors == self.lanes * self.vectors * self.cluster else "false",
        }


def columns_tile(row_vectors: int, *, weighted: bool) -> ColumnsTile | None:
    """The tile for rows of that many vectors; None for short rows, and for those that 16 blocks cannot hold.

    About 192 KiB of an SM hold rows. `weighted`: a weight stays in registers beside each vector.

    >>> columns_tile(256, weighted=True)
    ColumnsTile(lanes=128, vectors=2, cluster=1, stages=4, blocks=6)
    >>> columns_tile(1024, weighted=True)
    ColumnsTile(lanes=128, vectors=8, cluster=1, stages=3, blocks=4)
    >>> columns_tile(4096, weighted=True)
    ColumnsTile(lanes=256, vectors=8, cluster=2, stages=3, blocks=2)
    >>> columns_tile(4096, weighted=False)
    ColumnsTile(lanes=256, vectors=4, cluster=4, stages=4, blocks=3)
    >>> columns_tile(16384, weighted=True), columns_tile(65537, weighted=True), columns_tile(64, weighted=True)
    (ColumnsTile(lanes=512, vectors=8, cluster=4, stages=3, blocks=1), None, None)
    """
    if row_vectors < SHORTEST_ROW_VECTORS:
        return None
    if row_vectors <= 1024:
        vectors = -(-row_vectors // 128)
        return ColumnsTile(128, vectors, 1, 4, 6) if vectors <= 4 else ColumnsTile(128, vectors, 1, 3, 4)
    for cluster in (1, 2, 4, CLUSTER):
        if weighted and cluster < CLUSTER and row_vectors <= 2048 * cluster:
            return ColumnsTile(_lanes(row_vectors, 8, cluster), 8, cluster, 3, 2)
        if not weighted and row_vectors <= 1024 * cluster:
            return ColumnsTile(_lanes(row_vectors, 4, cluster), 4, cluster, 4, 3)
    for cluster in (2, 4, CLUSTER, MOST_CLUSTER):
        if row_vectors <= LANES * MOST_VECTORS * cluster:
            return ColumnsTile(_lanes(row_vectors, MOST_VECTORS, cluster), MOST_VECTORS, cluster, 3)
    return None


def _lanes(row_vectors: int, vectors: int, cluster: int) -> int:
    return 32 * -(-row_vectors // (32 * vectors * cluster))


@dataclass(frozen=True, slots=True)
class ExponentialsTile:
    """Threads of a block, vectors a thread and row, blocks of a cluster, vectors kept in registers; two rows are in flight."""

    lanes: int
    vectors: int
    cluster: int
    in_registers: int = 0

    @property
    def shared_bytes(self) -> int:
        return 2 * VEC16_BYTES * self.lanes * (self.vectors - self.in_registers)

    def defines(self, element: str, *, aligned: bool) -> dict[str, str]:
        """Macros for the kernels of `headers/persistent_exponentials.cuh`; `aligned`: rows are whole vectors."""
        return {
            "ELEMENT": element,
            "ROW_LANES": str(self.lanes),
            "ROW_VECTORS": str(self.vectors),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_BLOCKS": "1",
            "ROW_ALIGNED": "true" if aligned else "false",
            "COLUMNS_IN_REGISTERS": str(self.in_registers),
        }


def exponentials_tiles(row_vectors: int) -> tuple[ExponentialsTile, ...]:
    """Tiles for rows of that many vectors with one block an SM; none for rows of up to 64 KiB or beyond 1 MiB.

    The first is the fastest where as many SMs get a block of it as of the others: an H200 has room for 30 to 33 clusters of four.
    With 1024 threads one vector in eight stays in registers: two rows of the others take 224 of an SM's 227 KiB. In clusters of
    eight it is two, since the sums of their warps take 4 KiB.

    >>> exponentials_tiles(4096), exponentials_tiles(65537)
    ((), ())
    >>> exponentials_tiles(16384)[0]
    ExponentialsTile(lanes=512, vectors=8, cluster=4, in_registers=0)
    >>> exponentials_tiles(16384)[1:]
    (ExponentialsTile(lanes=1024, vectors=8, cluster=2, in_registers=1),)
    >>> exponentials_tiles(65536)
    (ExponentialsTile(lanes=1024, vectors=8, cluster=8, in_registers=2),)
    """
    if row_vectors <= LONGEST_ROW_VECTORS:
        return ()
    tiles = []
    for most in (LANES, 2 * LANES):
        cluster = next((c for c in (1, 2, 4, CLUSTER) if row_vectors <= c * MOST_VECTORS * most), 0)
        if cluster:
            lanes = _lanes(row_vectors, MOST_VECTORS, cluster)
            in_registers = 0 if lanes <= 800 else 2 if cluster == CLUSTER else 1
            tiles.append(ExponentialsTile(lanes, MOST_VECTORS, cluster, in_registers))
    return tuple(tiles)


def best_covered(resident: Sequence[int]) -> int:
    """Index of the first of several tiles such that no other has 5 % more resident blocks; `resident`: blocks of each.

    >>> best_covered((120, 132)), best_covered((128, 132))
    (1, 0)
    """
    return next(i for i, blocks in enumerate(resident) if 1.05 * blocks >= max(resident))


@dataclass(frozen=True, slots=True)
class PersistentKernel:
    """A kernel of `headers/persistent_exponentials.cuh` compiled for a matrix, and how many of its blocks are resident."""

    kernel: Any
    tile: ExponentialsTile
    resident: int


def persistent_kernel(source: Path, name: str, x_MN: Tensor) -> PersistentKernel | None:
    """The kernel for the rows of this matrix; None where rows are short or too long, or fewer than the clusters of all SMs."""
    m, n = x_MN.shape
    size = x_MN.element_size()
    candidates = []
    for tile in exponentials_tiles(vectors_of_row(n, size)):
        if m * tile.cluster > multiprocessors(x_MN.device):
            defines = tile.defines(nvrtc.element_type(x_MN.dtype), aligned=n * size % VEC16_BYTES == 0)
            needs = {"cluster": tile.cluster, "shared_bytes": tile.shared_bytes}
            kernel = nvrtc.kernel(source, name, defines, **needs)  # type: ignore[arg-type]
            candidates.append(PersistentKernel(kernel, tile, nvrtc.resident(kernel, tile.lanes, **needs)))
    if not candidates:
        return None
    return candidates[best_covered([c.resident for c in candidates])]
