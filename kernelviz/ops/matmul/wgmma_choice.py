"""Width of tiles and size of clusters of the wgmma kernel by the size of a product. Imports neither torch nor CUDA."""

from __future__ import annotations

from collections.abc import Mapping

from kernelviz.core.problem import Problem
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.matmul.wgmma import BOX, DEPTH, Options, divided

SPACE = {"columns": (0, 256, 192, 128), "cluster": (0, 2, 4, 1), "stages": (0, 4, 3, 5, 6)}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""
STEP = {256: 1.0, 192: 0.78, 128: 0.56}
"""Time of a step of K by the width of the tile: a narrow tile copies more for each product. Estimated from 4096³ on an H200,
where tiles of 128 columns took 1.1 times as long."""
STAGES = {256: 4, 192: 5, 128: 6}
"""The most that fit. Tiles of 128 columns took 77 instead of 99 us with 6 instead of 4 (512 × 4096 × 14336, on an H200)."""
CLUSTERS = {256: (2, 4), 192: (1,), 128: (2, 4)}
"""The three boxes of B of 192 columns can be divided among blocks only into more and smaller copies; one block was 2 % faster."""
STEPS_OF_SUMS, STEPS_OF_TILE = 18, 3
"""Time, in steps of a tile of 256 columns, to add up the parts of a tile; and to begin a tile and to store it."""


def options(columns: int, cluster: int, stages: int) -> Options:
    """The kernel with this tile. Of three boxes of C, all are stored at a time, or one if there is no room; otherwise two."""
    return Options(
        columns=columns,
        consumers=2,
        stages=stages,
        specialised=1,
        persistent=1,
        cluster=cluster,
        c_boxes=2 if columns != 192 else 3 if stages <= 4 else 1,
        hilbert=1,
        group=8,
        split_k=1,
    )


def estimated(m: int, n: int, k: int, multiprocessors: int, of: Options) -> float:
    """Time in steps of a tile of 256 columns.

    >>> [round(estimated(512, 6144, 4096, 132, options(n, CLUSTERS[n][0], STAGES[n])), 1) for n in STEP]
    [67.0, 52.3, 64.4]
    """
    tiles = -(-m // (of.rows * of.cluster)) * -(-n // of.columns)
    depths, clusters = -(-k // DEPTH), multiprocessors // of.cluster
    division = divided(tiles, depths, clusters)
    rounds = -(-division.whole // clusters)
    steps = rounds * (depths + STEPS_OF_TILE) * STEP[of.columns]
    if division.parts > 1:
        rounds_of_parts = -(-(tiles - division.whole) * division.parts // clusters)
        steps += rounds_of_parts * (depths / division.parts * STEP[of.columns] + STEPS_OF_SUMS * of.columns / 256)
    return steps


def choose(m: int, n: int, k: int, multiprocessors: int) -> Options:
    """The tile and cluster of which the least time is estimated; the first of equal ones.

    >>> sizes = ((4096, 4096, 4096), (512, 6144, 4096), (512, 4096, 14336), (512, 14336, 4096), (256, 4096, 4096))
    >>> [(one.columns, one.cluster) for one in (choose(*size, 132) for size in sizes)]
    [(256, 2), (192, 1), (128, 2), (256, 2), (128, 2)]
    """
    every = [options(columns, cluster, STAGES[columns]) for columns in STEP for cluster in CLUSTERS[columns]]
    return min(every, key=lambda one: estimated(m, n, k, multiprocessors, one))


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: its shared memory, or a tile of B that cannot be divided so."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    one = options(**configuration)
    if one.rows_of_b % 8:
        return f"{one.columns // BOX} boxes of B cannot be divided among {one.cluster} blocks"
    if one.shared_bytes > MOST_SHARED_BYTES:
        return f"needs {one.shared_bytes:,} bytes of shared memory"
    return None
