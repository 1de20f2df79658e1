"""Tile, cluster and stages of the wgmma kernels by the size of a product. Imports neither torch nor CUDA."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelviz.core.problem import Problem
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.matmul.wgmma import BOX, DEPTH, Options, divided

SPACE = {
    "rows": (0, 128, 64),
    "columns": (0, *range(256, 63, -16)),
    "cluster": (0, 2, 4, 1),
    "stages": (0, 4, 3, 5, 6, 8),
}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """Times on an H200, bf16, behind a flush: fits of `tests/gpu/product_sweep.py`, 2 to 7 % (root mean square) off from 512³ to
    4096³ and from 192 × 640 to 512 × 6144 by up to 8192. With many rounds they are lower than what is measured, by up to 20 % for
    tiles that are no multiple of 64 columns wide.

    `step_us`: of 64 steps of K. `begin_us`: to fill the stages first and to store C, which is partly beside the next tile.
    `cluster_us`: what a cluster adds to that, because its blocks wait for each other. `part_us`: for each part of a
    tile, to add them up. `stages`: the most that fit, or that help.
    """

    rows: int
    columns: int
    step_us: float
    begin_us: float
    cluster_us: float
    part_us: float
    stages: int
    clusters: tuple[int, ...]


TILES = (
    Tile(rows=128, columns=256, step_us=0.586, begin_us=1.66, cluster_us=0.8, part_us=4.0, stages=4, clusters=(2, 1)),
    Tile(rows=128, columns=240, step_us=0.557, begin_us=1.43, cluster_us=0.8, part_us=4.0, stages=4, clusters=(1,)),
    Tile(rows=128, columns=224, step_us=0.522, begin_us=1.4, cluster_us=0.8, part_us=4.0, stages=4, clusters=(1,)),
    Tile(rows=128, columns=208, step_us=0.55, begin_us=1.0, cluster_us=0.8, part_us=4.0, stages=4, clusters=(1,)),
    Tile(rows=128, columns=192, step_us=0.446, begin_us=1.29, cluster_us=0.8, part_us=2.7, stages=5, clusters=(1,)),
    Tile(rows=128, columns=176, step_us=0.417, begin_us=1.18, cluster_us=0.8, part_us=2.7, stages=5, clusters=(1,)),
    Tile(rows=128, columns=160, step_us=0.38, begin_us=1.16, cluster_us=0.8, part_us=2.7, stages=5, clusters=(1,)),
    Tile(rows=128, columns=144, step_us=0.348, begin_us=1.17, cluster_us=0.8, part_us=2.7, stages=5, clusters=(1,)),
    Tile(rows=128, columns=128, step_us=0.299, begin_us=0.94, cluster_us=0.6, part_us=1.45, stages=6, clusters=(2, 1)),
    Tile(rows=128, columns=112, step_us=0.304, begin_us=0.46, cluster_us=0.6, part_us=1.45, stages=6, clusters=(1,)),
    Tile(rows=128, columns=96, step_us=0.271, begin_us=0.53, cluster_us=0.6, part_us=1.45, stages=6, clusters=(1,)),
    Tile(rows=64, columns=256, step_us=0.301, begin_us=1.33, cluster_us=0.4, part_us=1.45, stages=5, clusters=(1,)),
    Tile(rows=64, columns=192, step_us=0.256, begin_us=0.79, cluster_us=0.4, part_us=1.0, stages=6, clusters=(1,)),
    Tile(rows=64, columns=128, step_us=0.207, begin_us=0.43, cluster_us=0.4, part_us=0.55, stages=8, clusters=(1, 2)),
    Tile(rows=64, columns=112, step_us=0.239, begin_us=0.09, cluster_us=0.4, part_us=0.55, stages=8, clusters=(1,)),
    Tile(rows=64, columns=96, step_us=0.209, begin_us=0.24, cluster_us=0.4, part_us=0.5, stages=8, clusters=(1,)),
    Tile(rows=64, columns=80, step_us=0.206, begin_us=0.2, cluster_us=0.4, part_us=0.4, stages=8, clusters=(1,)),
    Tile(rows=64, columns=64, step_us=0.164, begin_us=0.17, cluster_us=0.4, part_us=0.3, stages=8, clusters=(1,)),
)
"""The three boxes of B of 192 columns can be divided among blocks only into more and smaller copies; one block was 2 % faster.
Small tiles copy more for each product: the tensor cores are busy a third of the time with 64 × 64, nine tenths with 128 × 256."""
SUMS_US = 2.3
"""To add up the parts of a tile, beside `Tile.part_us`: whoever is last waits for the others' sums, through the L2."""
LAUNCH_US = 2.3
"""What all tiles need beside that, an empty kernel's time included."""
SHARED_STEP = 0.975
"""Part of the time of a step that remains if a cluster loads B once. 8192³: 1465 us without, 1426 with clusters of two blocks."""


def options(rows: int, columns: int, cluster: int, stages: int, split_k: int = 1) -> Options:
    """The kernel with this tile. Of three boxes of C, all are stored at a time, or one if there is no room; of a small tile one;
    otherwise two. Small tiles are few, and need no table of their order."""
    boxes = 1 if rows == BOX or columns == BOX else (1, 2, 3 if stages <= 4 else 1, 2)[-(-columns // BOX) - 1]
    return Options(
        columns=columns,
        consumers=rows // BOX,
        stages=stages,
        specialised=1,
        persistent=1,
        cluster=cluster,
        c_boxes=boxes,
        hilbert=int(rows != BOX),
        group=8,
        split_k=split_k,
    )


def estimated(m: int, n: int, k: int, multiprocessors: int, tile: Tile, cluster: int, *, split_k: bool = True) -> float:
    """Time in us on an H200, without what all tiles need.

    >>> wide = [tile for tile in TILES if tile.rows == 128 and tile.columns >= 192]
    >>> [round(estimated(512, 6144, 4096, 132, tile, tile.clusters[0]), 1) for tile in wide]
    [39.0, 37.1, 34.8, 36.2, 29.8]
    """
    of = options(tile.rows, tile.columns, cluster, tile.stages)
    tiles = -(-m // (of.rows * cluster)) * -(-n // of.columns)
    depths, clusters = -(-k // DEPTH), multiprocessors // cluster
    step_us = tile.step_us * (SHARED_STEP if cluster > 1 else 1)
    begin_us = tile.begin_us + (tile.cluster_us if cluster > 1 else 0)
    division = divided(tiles, depths, clusters, of)
    if not split_k:
        return -(-tiles // clusters) * (depths * step_us + begin_us)
    time_us = -(-division.whole // clusters) * (depths * step_us + begin_us)
    if division.parts > 1:
        rounds_of_parts = -(-(tiles - division.whole) * division.parts // clusters)
        sums_us = SUMS_US + tile.part_us * division.parts
        time_us += rounds_of_parts * (depths / division.parts * step_us + begin_us + sums_us)
    return time_us


def estimated_us(m: int, n: int, k: int, multiprocessors: int) -> float:
    """Of the choice by size, on an H200, launch included."""
    return LAUNCH_US + min(
        estimated(m, n, k, multiprocessors, tile, cluster) for tile in TILES for cluster in tile.clusters
    )


def choose(m: int, n: int, k: int, multiprocessors: int) -> Options:
    """The tile and cluster of which the least time is estimated; the first of equal ones.

    >>> sizes = ((4096, 4096, 4096), (512, 6144, 4096), (512, 4096, 14336), (1024, 1024, 1024), (512, 512, 512))
    >>> [(one.rows, one.columns, one.cluster) for one in (choose(*size, 132) for size in sizes)]
    [(128, 256, 2), (128, 192, 1), (128, 128, 2), (64, 128, 1), (64, 64, 1)]
    """
    return _fastest(m, n, k, multiprocessors, split_k=True)


def choose_for_layouts(m: int, n: int, k: int, multiprocessors: int) -> Options:
    """The same for products with transposed factors, whose kernel has no split-K.

    >>> [(one.rows, one.columns) for one in (choose_for_layouts(n, n, n, 132) for n in (512, 1024, 1536, 4096))]
    [(64, 64), (64, 128), (128, 144), (128, 256)]
    """
    return _fastest(m, n, k, multiprocessors, split_k=False)


def _fastest(m: int, n: int, k: int, multiprocessors: int, *, split_k: bool) -> Options:
    ways = ((tile, cluster) for tile in TILES for cluster in tile.clusters)
    tile, cluster = min(ways, key=lambda way: estimated(m, n, k, multiprocessors, *way, split_k=split_k))
    return options(tile.rows, tile.columns, cluster, tile.stages, split_k=int(split_k))


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: its shared memory, or a tile of B that cannot be divided so."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    one = options(**configuration)
    if one.columns % BOX and one.cluster > 1:
        return f"a tile of {one.columns} columns is not divided among the blocks of a cluster"
    if one.rows_of_b % 8:
        return f"{one.boxes} boxes of B cannot be divided among {one.cluster} blocks"
    if one.shared_bytes > MOST_SHARED_BYTES:
        return f"needs {one.shared_bytes:,} bytes of shared memory"
    return None


def admits_layouts(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """The same for products with transposed factors, whose boxes of B are divided whole."""
    boxes, cluster = -(-configuration["columns"] // BOX), configuration["cluster"]
    if cluster and boxes % cluster:
        return f"{boxes} boxes of B cannot be divided among {cluster} blocks"
    return admits(configuration, problem)
