"""The kernel of `matmul` for few rows or few tiles on Hopper's tensor cores (wgmma_skinny.cu): what may be tuned, choice by size,
launch.

Imports neither torch nor CUDA, so that a space can be listed without them.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.core.problem import Problem
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, MULTIPROCESSORS, PTX_NAMES, limits
from kernelviz.ops.kernels.tensor_map import Boxes, require_pitch, tensor_maps
from kernelviz.ops.matmul.gemv import SHORTEST_PART

if TYPE_CHECKING:
    from torch import Tensor

    from kernelviz.ops.catalog.variant import Launch

SOURCE = Path(__file__).parent / "wgmma_skinny.cu"
MOST_ROWS = 128
DEPTH, ALIGNMENT_BYTES = 64, 1024
SYSTEM_BYTES = 1024
"""Shared memory that the system takes of each block: a multiprocessor has as much as the largest block and this."""
LEAST_AHEAD_BYTES = 16 * 1024
"""Of a multiprocessor: half of what hides the latency of memory by Little's law (`gemv.LEAST_AHEAD_BYTES`)."""
SPACE = {"columns": (0, 128, 64), "stages": (0, 4, 3, 2, 5, 6, 8), "parts": (0, 1, 2, 3, 4, 6, 8)}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""


PARTS_SPACE = {"rows": (0, 64, 128), **SPACE}
"""The same for products of any number of rows, in tiles of `rows`."""


def padded_rows(m: int) -> int:
    """Rows that the tensor cores compute.

    >>> [padded_rows(m) for m in (1, 9, 17, 64, 128)]
    [8, 16, 32, 64, 128]
    """
    return max(8, 1 << (m - 1).bit_length())


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """The definitions of wgmma_skinny.cu, which explains them."""

    columns: int
    stages: int
    parts: int

    def shared_bytes(self, rows: int) -> int:
        """The stages with their barriers, or the sums that take their place, and what aligns them to 1024 bytes."""
        stages = self.stages * (2 * DEPTH * (self.columns + rows) + 16)
        return ALIGNMENT_BYTES + max(stages, 4 * rows * (self.columns + 4))

    def resident(self, rows: int) -> int:
        """Blocks of a multiprocessor at the same time, by shared memory."""
        return MOST_SHARED_BYTES // (self.shared_bytes(rows) + SYSTEM_BYTES)

    def defines(self, element: str, rows: int, *, overlap: bool) -> dict[str, str]:
        """The macros, for elements of this C++ type. `overlap`: of the products of two stages."""
        return {
            "COLUMNS": str(self.columns),
            "ROWS": str(rows),
            "STAGES": str(self.stages),
            "PARTS": str(self.parts),
            "OVERLAP": str(int(overlap)),
            "ELEMENT": element,
            "ELEMENT_PTX": f'"{PTX_NAMES[element]}"',
        }


def choose(m: int, n: int, k: int, processors: int = MULTIPROCESSORS) -> Tile:
    """At most one block a multiprocessor, as even as parts of K allow, with 4 to 8 stages: 4 to 7 MB of B on their way.

    More blocks or stages read more of B at a time, from places that are further apart, and were slower on an H200 (64 rows,
    n 4096, k 14336: 31.0 µs with 2 parts of K, 43.3 with 4; n 14336: 29.6 µs with 4 stages, 30.1 with 6). Where there are more
    tiles of 64 columns than multiprocessors, tiles of 128 need less of A.

    >>> [choose(64, n, k) for n, k in ((14336, 4096), (6144, 4096), (4096, 14336))]  # doctest: +NORMALIZE_WHITESPACE
    [Tile(columns=128, stages=4, parts=1), Tile(columns=64, stages=8, parts=1), Tile(columns=64, stages=6, parts=2)]
    >>> choose(64, 2112, 7168), choose(128, 6144, 4096)
    (Tile(columns=64, stages=6, parts=4), Tile(columns=128, stages=4, parts=2))
    """
    rows = padded_rows(m)
    narrow = n <= 64 * processors and (rows <= 64 or 3 * n <= 128 * processors)
    columns = 64 if narrow else 128
    tiles = -(-n // columns)
    parts = max(1, min(8, processors // tiles, k // (2 * SHORTEST_PART)))
    return Tile(columns=columns, stages=4 if columns == 128 else 8 if parts == 1 else 6, parts=parts)


def admits(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: it fits no GPU, or it loads too little ahead."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > MOST_ROWS:
        return f"more than {MOST_ROWS} rows"
    tile, rows = Tile(**configuration), padded_rows(m)
    if (resident := tile.resident(rows)) == 0:
        return f"needs {tile.shared_bytes(rows):,} bytes of shared memory"
    if tile.parts > 1 and k < tile.parts * SHORTEST_PART:
        return f"parts of K would have fewer than {SHORTEST_PART} rows of B"
    blocks = -(-(-(-n // tile.columns) * tile.parts) // MULTIPROCESSORS)
    if tile.parts > 1 and blocks > resident:
        return f"there are enough tiles without {tile.parts} parts of K"
    ahead = min(blocks, resident) * (tile.stages - 1) * 2 * DEPTH * tile.columns
    if ahead < LEAST_AHEAD_BYTES and n * k >= 2**22:
        return f"a multiprocessor would load only {ahead:,} bytes ahead, too few to hide the latency"
    return None


@dataclass(frozen=True, kw_only=True, slots=True)
class TileUs:
    """Times of a tile in us on an H200, bf16, behind a flush. `step`: 64 of K. `rest`: all else, with the launch."""

    step: float
    rest: float


TILES_US = {
    (64, 64): TileUs(step=0.151, rest=1.9),
    (64, 128): TileUs(step=0.217, rest=2.2),
    (128, 64): TileUs(step=0.178, rest=2.6),
    (128, 128): TileUs(step=0.297, rest=3.0),
}
"""By rows and columns of a tile: fits of `tests/gpu/product_sweep.py` where all blocks are resident at once, 2 to 9 % (root mean
square) off from 512³ and 192 × 640 to 1024 × 1024 by up to 8192."""
SUMS_US, SUMS_US_OF_PART = 1.5, 0.12
"""To add up parts through shared memory, and more for each part."""
FILL_US = 1.2
PARTS = (1, 2, 3, 4, 6, 8)


def resident_clusters(parts: int, processors: int = MULTIPROCESSORS) -> int:
    """Clusters of so many blocks that are assumed to be resident at once, with a block on each multiprocessor.

    The multiprocessors of a cluster are of one GPC, and some GPCs leave a rest: on an H200, 32 clusters of four and 20 of six
    were not resident at once, 30 of four were.

    >>> [resident_clusters(parts) for parts in PARTS]
    [132, 66, 43, 31, 19, 12]
    """
    return processors // parts - (parts // 2 if parts > 2 else 0)


def choose_parts(m: int, n: int, k: int, processors: int = MULTIPROCESSORS) -> tuple[int, Tile]:
    """Rows, and tile: those of which the least time is estimated.

    >>> sizes = ((512, 512, 4096), (192, 640, 1536), (1024, 1024, 1024), (512, 512, 512))
    >>> [(rows, tile.columns, tile.parts) for rows, tile in (choose_parts(*size) for size in sizes)]
    [(128, 64, 3), (64, 64, 4), (128, 64, 1), (64, 64, 1)]
    """
    most = max(1, k // SHORTEST_PART)
    ways = [(rows, with_stages(rows, columns, parts)) for rows, columns in TILES_US for parts in PARTS if parts <= most]
    return min(ways, key=lambda way: estimated_us(m, n, k, way[0], way[1], processors))


def rounds(m: int, n: int, rows: int, tile: Tile, processors: int = MULTIPROCESSORS) -> int:
    """How often all multiprocessors get blocks."""
    return -(-(-(-m // rows) * -(-n // tile.columns)) // resident_clusters(tile.parts, processors))


def estimated_us(m: int, n: int, k: int, rows: int, tile: Tile, processors: int = MULTIPROCESSORS) -> float:
    """Of a product on an H200, launch included. In each further round, the stages are filled before anything is multiplied."""
    us, times = TILES_US[rows, tile.columns], rounds(m, n, rows, tile, processors)
    sums = SUMS_US + SUMS_US_OF_PART * tile.parts if tile.parts > 1 else 0
    return us.rest + times * (-(-k // DEPTH) / tile.parts * us.step + sums) + (times - 1) * FILL_US


def with_stages(rows: int, columns: int, parts: int) -> Tile:
    """The tile with up to eight stages, as many as fit."""
    tiles = (Tile(columns=columns, stages=stages, parts=parts) for stages in (8, 6, 5, 4))
    return next(tile for tile in tiles if tile.resident(rows))


def admits_parts(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration is not measured: its shared memory, or parts of K that are too short."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    rows, tile = _rows_and_tile(configuration)
    if tile.resident(rows) == 0:
        return f"needs {tile.shared_bytes(rows):,} bytes of shared memory"
    if tile.parts > 1 and problem.sizes["k"] < tile.parts * SHORTEST_PART:
        return f"parts of K would have fewer than {SHORTEST_PART} rows of B"
    return None


def _rows_and_tile(parameters: Mapping[str, int]) -> tuple[int, Tile]:
    return parameters["rows"], Tile(**{name: value for name, value in parameters.items() if name != "rows"})


def bind_parts(a_MK: Tensor, b_KN: Tensor, parameters: Mapping[str, int]) -> Launch:
    """The product of contiguous matrices (M, K) and (K, N) of bf16 or fp16. `parameters`: those of PARTS_SPACE.

    Errors: BadField for matrices that are not contiguous, or whose rows are no multiples of 16 bytes.
    """
    if all(parameters.values()):
        rows, tile = _rows_and_tile(parameters)
    else:
        rows, tile = choose_parts(a_MK.shape[0], b_KN.shape[1], a_MK.shape[1], limits(a_MK.device)[0])
    return _bind(a_MK, b_KN, rows, tile, overlap=True)


def bind(a_MK: Tensor, b_KN: Tensor, parameters: Mapping[str, int]) -> Launch:
    """The product of contiguous matrices (M, K) and (K, N) of bf16 or fp16, M at most 128. `parameters`: those of SPACE.

    Errors: BadField for matrices that are not contiguous, whose rows are no multiples of 16 bytes, or with more rows.
    """
    (m, k), n = a_MK.shape, b_KN.shape[1]
    if m > MOST_ROWS:
        raise BadField("size m", m, f"this kernel holds at most {MOST_ROWS} rows of A; choose another variant")
    tile = Tile(**parameters) if any(parameters.values()) else choose(m, n, k, limits(a_MK.device)[0])
    return _bind(a_MK, b_KN, padded_rows(m), tile, overlap=False)


def _bind(a_MK: Tensor, b_KN: Tensor, rows: int, tile: Tile, *, overlap: bool) -> Launch:
    import torch

    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    require_pitch("k", k, a_MK.element_size())
    require_pitch("n", n, b_KN.element_size())
    shared_bytes = tile.shared_bytes(rows)
    defines = tile.defines(nvrtc.element_type(a_MK.dtype), rows, overlap=overlap)
    kernel = nvrtc.kernel(
        SOURCE, "matmul_wgmma_skinny", defines, shared_bytes=shared_bytes, cluster=tile.parts, specific=True
    )
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    maps = tensor_maps([Boxes(a_MK, rows), Boxes(b_KN, DEPTH), Boxes(c_MN, rows)])
    blocks, threads = -(-m // rows) * -(-n // tile.columns) * tile.parts, 2 * tile.columns + 32
    sizes = tuple(map(ctypes.c_int, (m, n, k)))

    def launch() -> Tensor:
        cluster, c = tile.parts, c_MN.data_ptr()
        nvrtc.launch(kernel, blocks, threads, maps, c, *sizes, cluster=cluster, shared_bytes=shared_bytes)
        return c_MN

    return launch
