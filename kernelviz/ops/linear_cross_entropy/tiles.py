"""Tiles of the logits: what a program of the Triton kernels reduces, and which configurations fit a multiprocessor."""

from __future__ import annotations

from dataclasses import dataclass

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES

BARRIER_BYTES = 1024
"""Room for mbarriers and for the reductions of rows across warps."""
MOST_ACCUMULATORS = 128
"""Registers of a thread for its part of a tile; with more, addresses and what is reduced do not fit into 255 registers."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """BM rows and BV entries of the vocabulary of one program, in steps of BH of the hidden size."""

    bm: int
    bv: int
    bh: int
    warps: int
    stages: int

    def grid(self, m: int, v: int) -> int:
        return -(-m // self.bm) * -(-v // self.bv)

    def shared_bytes(self, itemsize_bytes: int) -> int:
        """Shared memory of the pipeline: a buffer for x and w in each stage."""
        return (self.bm + self.bv) * self.bh * itemsize_bytes * self.stages


# Largest first. The last of each is for fewer than 33 rows, where the time is that of reading w.
_HALF = (
    Tile(bm=128, bv=256, bh=64, warps=8, stages=3),
    Tile(bm=128, bv=128, bh=64, warps=8, stages=3),
    Tile(bm=64, bv=128, bh=64, warps=4, stages=4),
)
_HALF_SKINNY = Tile(bm=16, bv=64, bh=128, warps=4, stages=4)
# FMA units, no tensor core: a thread holds its part of the tile in registers, and a deep step only costs more of them.
_SINGLE = (
    Tile(bm=128, bv=128, bh=16, warps=8, stages=3),
    Tile(bm=64, bv=64, bh=16, warps=4, stages=3),
)
_SINGLE_SKINNY = Tile(bm=16, bv=64, bh=32, warps=4, stages=3)


def tile_for(m: int, v: int, itemsize_bytes: int, processors: int, shared_bytes: int) -> Tile:
    """The largest tile that fits shared memory and still gives every SM one, else the smallest; a flat one for few rows.

    >>> tile_for(8192, 128256, 2, 132, 232_448).bv, tile_for(8192, 128256, 2, 128, 101_376).bv
    (256, 128)
    """
    tiles, skinny = (_HALF, _HALF_SKINNY) if itemsize_bytes == 2 else (_SINGLE, _SINGLE_SKINNY)
    if m <= 32:
        return skinny
    fitting = [t for t in tiles if t.bm <= max(64, m) and t.shared_bytes(itemsize_bytes) <= shared_bytes]
    return next((t for t in fitting if t.grid(m, v) >= processors), fitting[-1])


def admits_descriptors(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its registers, its shared memory, or a tile of which more than half has no rows."""
    c = configuration
    if c["tile_m"] > max(64, 2 * problem.sizes["m"]):
        return "tile_m is more than twice the size m of the problem"
    elements = c["tile_m"] * c["tile_n"] // (32 * c["warps"])
    if elements > MOST_ACCUMULATORS:
        return f"a thread would hold {elements} logits, at most {MOST_ACCUMULATORS} fit its registers"
    tile = Tile(bm=c["tile_m"], bv=c["tile_n"], bh=c["tile_k"], warps=c["warps"], stages=c["stages"])
    needed_bytes = tile.shared_bytes(2) + BARRIER_BYTES
    if needed_bytes > MOST_SHARED_BYTES:
        return f"it needs {needed_bytes} bytes of shared memory, a block has at most {MOST_SHARED_BYTES}"
    return None
