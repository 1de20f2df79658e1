"""A tile and parts of K by the size of a product, for kernels that load through pointers. Imports neither torch nor Triton."""

from __future__ import annotations

from dataclasses import dataclass

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration
from kernelviz.ops.matmul.tiles import admits_pointers

SPACE = {
    "tile_m": (0, 16, 32, 64, 128),
    "tile_n": (0, 16, 32, 64, 128),
    "tile_k": (0, 16, 32, 64, 128),
    "parts": (0, 1, 2, 4, 8, 16, 32),
    "warps": (0, 4, 8),
    "stages": (0, 3, 2, 4),
}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""
LEAST_TILE, MOST_TILE = 16, 128
SHORTEST_PART = 256
"""Steps of a part of K: a shorter one would take less time than its sums need to be added."""
MOST_PARTS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class SizedTile:
    """A program computes BM × BN of the product over one of `parts` parts of K, in steps of BK."""

    bm: int
    bn: int
    bk: int
    parts: int
    warps: int
    stages: int


def power_of_two(size: int) -> int:
    """The smallest power of two that is not smaller, from 16 to 128.

    >>> [power_of_two(n) for n in (1, 17, 100, 5000)]
    [16, 32, 128, 128]
    """
    return min(MOST_TILE, max(LEAST_TILE, 1 << (size - 1).bit_length()))


def choose(m: int, n: int, k: int, processors: int, *, cores: bool = True) -> SizedTile:
    """The largest tile that leaves no half of it outside; smaller ones, then parts of K, where multiprocessors would be idle.

    `cores`: whether tensor cores multiply; else a deep step only takes registers.

    >>> choose(854, 114, 7041, 132)
    SizedTile(bm=64, bn=64, bk=64, parts=9, warps=4, stages=3)
    >>> choose(5454, 9, 5366, 132).parts, choose(10874, 779, 68, 132).bk, choose(4096, 4096, 4096, 132).parts
    (3, 32, 1)
    """
    bm, bn = power_of_two(m), power_of_two(n)
    least = 64 if k >= 2 * SHORTEST_PART else 32
    while -(-m // bm) * -(-n // bn) < processors and max(bm, bn) > least:
        if bm >= bn:
            bm //= 2
        else:
            bn //= 2
    tiles = -(-m // bm) * -(-n // bn)
    parts = max(1, min(2 * processors // tiles, k // SHORTEST_PART, MOST_PARTS)) if tiles < processors else 1
    depths = (64, 32, 16) if cores else (32, 16)
    # The deepest step of which less than a third is empty.
    bk = next(d for d in depths if d == 16 or (-k % d) * 2 <= k)
    # Narrow tiles load little in a step. H200, 5454 × 9 × 5366: 29.8 µs with 128 of K in a step, 36.4 with 64.
    if cores and min(bm, bn) <= 32 and k >= 256:
        bk = 128
    return SizedTile(bm=bm, bn=bn, bk=bk, parts=parts, warps=8 if bm * bn >= 128 * 128 else 4, stages=3)


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: it does not fit a multiprocessor, or its parts of K are too short."""
    c = configuration
    if not all(c.values()):
        return "0 is the choice by size, in all parameters or in none"
    k = problem.sizes["k"]
    if c["parts"] > 1 and k < c["parts"] * SHORTEST_PART:
        return f"parts of K would have fewer than {SHORTEST_PART} elements"
    itemsize_bytes = 4 if problem.dtype == "fp32" else 2
    return admits_pointers({**c, "tile_k_bytes": c["tile_k"] * itemsize_bytes, "group": 1}, problem)
