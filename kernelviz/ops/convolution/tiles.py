"""The tile of a Triton program by the sizes of a convolution, and which tiles can be tuned. Imports neither torch nor Triton."""

from __future__ import annotations

from dataclasses import dataclass

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration
from kernelviz.ops.convolution.geometry import positions
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES

SPACE = {
    "tile_m": (0, 64, 128, 256),
    "tile_n": (0, 32, 64, 128, 256),
    "tile_k": (0, 32, 64, 128),
    "warps": (0, 4, 8),
    "stages": (0, 2, 3, 4, 5),
}
"""What may be tuned; 0, in all of them, is the choice of `choose`."""
MOST_ACCUMULATORS = 128
"""Registers of a thread for its part of the tile; with more, the addresses of the pixels do not fit into 255 registers."""
ITEMSIZE_BYTES = 2


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """A program computes BM pixels × BN filters in steps of BK channels."""

    bm: int
    bn: int
    bk: int
    warps: int
    stages: int

    @property
    def shared_bytes(self) -> int:
        """Shared memory of the pipeline: a buffer for pixels and filters in each stage."""
        return (self.bm + self.bn) * self.bk * ITEMSIZE_BYTES * self.stages

    @property
    def accumulators(self) -> int:
        """Elements of the tile for a thread."""
        return self.bm * self.bn // (32 * self.warps)


# Largest first, for the widest filters first. Three stages, so that two programs fit a multiprocessor: of 128 × 128, 73 µs on an
# H200 where four took 84 (1×1, 512 to 128 channels, 28×28, 256 images).
TILES = (
    Tile(bm=128, bn=256, bk=64, warps=8, stages=3),
    Tile(bm=128, bn=128, bk=64, warps=8, stages=3),
    Tile(bm=128, bn=64, bk=64, warps=8, stages=4),
    Tile(bm=64, bn=64, bk=64, warps=4, stages=4),
    Tile(bm=64, bn=32, bk=64, warps=4, stages=4),
)
SHORT_TERMS = 512
"""With so few products for a sum, 128 × 128 is faster than 128 × 256, whose sums are stored while nothing is multiplied."""


def choose(pixels: int, k: int, c: int, terms: int, processors: int, shared_bytes: int) -> Tile:
    """The largest tile that fits shared memory, is less than half outside the filters, and leaves no multiprocessor idle.

    `terms`: products that are added up for an element of the result.

    >>> [choose(802816, k, 64, 576, 132, 232_448).bn for k in (32, 64, 128, 256)]
    [32, 64, 128, 256]
    >>> choose(300, 256, 64, 576, 132, 232_448).bm, choose(802816, 256, 64, 64, 132, 232_448).bn
    (64, 128)
    >>> choose(802816, 256, 24, 216, 128, 101_376)
    Tile(bm=128, bn=128, bk=32, warps=8, stages=3)
    """
    bk = 64 if c > 32 else 32 if c > 16 else 16
    widest = 128 if terms <= SHORT_TERMS else 256
    fitting = [t for t in TILES if t.shared_bytes <= shared_bytes and t.bn <= widest and (t.bn < 2 * k or t.bn == 32)]
    tile = next((t for t in fitting if -(-pixels // t.bm) * -(-k // t.bn) >= processors), fitting[-1])
    return Tile(bm=tile.bm, bn=tile.bn, bk=bk, warps=tile.warps, stages=tile.stages)


def tile_of(bm: int, bn: int, bk: int, warps: int, stages: int) -> Tile | None:
    """The tile of a configuration, or None for the choice by size, where all numbers are 0."""
    return Tile(bm=bm, bn=bn, bk=bk, warps=warps, stages=stages) if bm else None


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: registers, shared memory, or a tile that is mostly empty."""
    c = configuration
    if not all(c.values()):
        return "0 is the choice by size, in all parameters or in none"
    tile = Tile(bm=c["tile_m"], bn=c["tile_n"], bk=c["tile_k"], warps=c["warps"], stages=c["stages"])
    if tile.accumulators > MOST_ACCUMULATORS:
        return f"a thread would hold {tile.accumulators} sums, at most {MOST_ACCUMULATORS} fit its registers"
    if tile.shared_bytes > MOST_SHARED_BYTES:
        return f"it needs {tile.shared_bytes} bytes of shared memory, a block has at most {MOST_SHARED_BYTES}"
    sizes = problem.sizes
    pixels = sizes["n"]
    for axis in "hw":
        pixels *= positions(sizes[axis], sizes["r"], sizes["s"])
    for name, key, size, least in (("pixels", "tile_m", pixels, 64), ("filters", "tile_n", sizes["k"], 32)):
        if c[key] > max(2 * size, least):
            return f"{key} is more than twice the number of {name}"
    return None
