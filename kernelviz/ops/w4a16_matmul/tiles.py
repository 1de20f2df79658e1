"""What may be tuned of the Triton variants of `w4a16_matmul`, and the choice by size. Imports neither torch nor Triton."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernelviz.core.problem import Problem
from kernelviz.ops.w4a16_matmul.layout import groups

GEMV_ROWS = 16
SHORTEST_PART_GROUPS = 4
"""A shorter part of K would be stored and added for little work."""
ACTIVATIONS_FIRST, WEIGHTS_FIRST = 1, 2
"""The first factor of the product: x, or the weights. Tensor cores take it from registers."""
FUSED_SPACE = {
    "rows": (0, 16, 32, 64, 128, 256),
    "features": (0, 64, 32, 128, 256, 16),
    "parts": (0, 1, 2, 4, 8),
    "warps": (0, 4, 8, 2),
    "stages": (0, 3, 4, 2, 5),
    "order": (0, 1, 2),
}
GEMV_SPACE = {
    "features": (0, 4, 8, 16, 2, 1, 32),
    "groups": (0, 8, 4, 16, 2),
    "parts": (0, 1, 2, 4, 8),
    "warps": (0, 4, 2, 8, 1),
    "stages": (0, 2, 3, 4),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FusedTile:
    """A program computes `rows` × `features` of y, one group of a part of K at a time. `order`: which factor is the first."""

    rows: int
    features: int
    parts: int
    warps: int
    stages: int
    order: int

    @property
    def shared_bytes(self) -> int:
        """About the shared memory of a program: stages of x and of packed weights, and one group of weights of 16 bits."""
        return self.stages * self.rows * 256 + (self.stages - 1) * self.features * 64 + self.features * 256


@dataclass(frozen=True, kw_only=True, slots=True)
class GemvTile:
    """A program computes `features` of one row of y, `groups` of a part of K at a time."""

    features: int
    groups: int
    parts: int
    warps: int
    stages: int


def fused_tile(m: int, n: int, k: int, multiprocessors: int, shared_bytes: int = 232448) -> FusedTile:
    """As few rows as there are up to 64, with parts of K so that each multiprocessor has three programs; else tall tiles.

    Each weight is dequantised once for each tile of rows, so these are as tall as possible. With 16 rows the weights are the
    first factor, because tensor cores of sm_90 need 64 rows of it.

    >>> for m in (1, 64, 4096):
    ...     print(fused_tile(m, 28672, 4096, 132))
    FusedTile(rows=16, features=64, parts=1, warps=4, stages=4, order=2)
    FusedTile(rows=64, features=128, parts=1, warps=8, stages=4, order=2)
    FusedTile(rows=256, features=128, parts=1, warps=8, stages=2, order=1)
    >>> fused_tile(1, 4096, 14336, 132).parts
    8
    """
    if m > 64:
        for rows in (256, 128):
            tile = FusedTile(rows=rows, features=128, parts=1, warps=8, stages=2, order=ACTIVATIONS_FIRST)
            enough = -(-m // rows) * -(-n // 128) >= 2 * multiprocessors and m > rows // 2
            if enough and tile.shared_bytes <= shared_bytes:
                return tile
        return FusedTile(rows=64, features=64, parts=1, warps=4, stages=3, order=ACTIVATIONS_FIRST)
    rows = 16 if m <= 16 else 32 if m <= 32 else 64
    most = max(1, groups(k) // SHORTEST_PART_GROUPS)
    if rows > 16:
        # 64 rows, 28672 × 4096 on an H200: 81.0 µs; 104.8 with tiles of 64 features and x as the first factor.
        tiles = -(-n // 128)
        parts = next((p for p in (1, 2, 4, 8) if 2 * tiles * p >= 3 * multiprocessors or 2 * p > most), 8)
        tile = FusedTile(rows=rows, features=128, parts=parts, warps=8, stages=4, order=WEIGHTS_FIRST)
        if tile.shared_bytes <= shared_bytes:
            return tile
    tiles = -(-n // 64)
    parts = next((p for p in (1, 2, 4, 8) if tiles * p >= 3 * multiprocessors or 2 * p > most), 8)
    few = rows == 16
    order = WEIGHTS_FIRST if few else ACTIVATIONS_FIRST
    return FusedTile(rows=rows, features=64, parts=parts, warps=4, stages=4 if few else 3, order=order)


def gemv_tile(m: int, n: int, k: int, multiprocessors: int) -> GemvTile:
    """8 features by 8 groups are 4 KB of weights for a program; parts of K where there are few programs.

    >>> gemv_tile(1, 28672, 4096, 132)
    GemvTile(features=8, groups=8, parts=1, warps=4, stages=2)
    >>> gemv_tile(1, 1024, 4096, 132).parts
    4
    """
    programs = -(-n // 8) * m
    most = max(1, groups(k) // (2 * SHORTEST_PART_GROUPS))
    parts = next((p for p in (1, 2, 4, 8) if programs * p >= 8 * multiprocessors or 2 * p > most), 8)
    return GemvTile(features=8, groups=8, parts=parts, warps=4, stages=2)


def _refused_parts(parts: int, k: int) -> str | None:
    if parts > 1 and groups(k) < parts * SHORTEST_PART_GROUPS:
        return f"parts of K would have fewer than {SHORTEST_PART_GROUPS} groups"
    return None


def admits_fused(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration of `triton_fused` is not measured."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    tile = FusedTile(**configuration)
    if tile.rows > 16 and tile.rows >= 2 * m:
        return f"half of {tile.rows} rows are outside of the matrix"
    if tile.features > 16 and tile.features >= 2 * n:
        return f"half of {tile.features} features are outside of the matrix"
    # fp32 sums, weights of 4 and of 16 bits, all in registers.
    registers = tile.features * (tile.rows + 128 // 2 + 128 // 8) // (32 * tile.warps)
    if registers > 224:
        return f"about {registers} registers a thread for the tile alone"
    if tile.shared_bytes > 232448:
        return f"about {tile.shared_bytes:,} bytes of shared memory; a block has at most 232,448"
    return _refused_parts(tile.parts, k)


def admits_gemv(configuration: Mapping[str, int], problem: Problem) -> str | None:
    """Why a configuration of `triton_gemv` is not measured."""
    if not all(configuration.values()):
        return "0 is the choice by size, in all parameters or in none"
    m, n, k = (problem.sizes[axis] for axis in ("m", "n", "k"))
    if m > GEMV_ROWS:
        return f"more than {GEMV_ROWS} rows"
    tile = GemvTile(**configuration)
    if tile.features > 1 and tile.features >= 2 * n:
        return f"half of {tile.features} features are outside of the matrix"
    if (weights := tile.features * tile.groups * 64 // (32 * tile.warps)) > 128:
        return f"{weights} bytes of weights a thread at a time: too many registers"
    if weights < 4:
        return "less than 4 bytes of weights a thread at a time"
    if tile.groups >= 2 * groups(k):
        return f"half of {tile.groups} groups are outside of the matrix"
    return _refused_parts(tile.parts, k)
