"""Tiles of `headers/known_normalisation.cuh`: how threads share rows whose length is a constant of the kernel."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd

from kernelviz.ops.kernels.vec16 import VEC16_BYTES

WARP, THREADS = 32, 128
"""Threads of a block of several rows: a warp, so that few rows reach as many SMs as they have warps, or four."""
FEW_THREADS = 2**12
"""Up to about a warp an SM of an H200, a block is one warp, and a lane has one pair of 16-bit elements: with eight elements a
lane the kernel has twice as many instructions, whose fetches take longer than two more steps of a reduction. H200, with pairs:
layernorm of a row of 32 fp16 takes 1.11 us and 1.22 in Triton, add_rmsnorm of 16 rows of 32 1.21 and 1.35. Where pairs end is an
estimate."""
MOST_THREADS_A_BYTE = 2**17
"""Of rows that share warps, for each byte of an element, because other kernels for short rows take the longer the more bytes
they move: one wave of an H200 in 16-bit formats, two in fp32. H200: rmsnorm of 10,569 rows of 19 bf16, 169,104 threads, takes
2.12 us and 2.28 in slabs, of 91,203 rows of 6 fp32, 182,406 threads, 2.10 and 2.02 through a ring; add_rmsnorm of 38,231 rows of
17 fp32, which are more, 4.41 through a ring."""
MOST_BLOCK_THREADS, MOST_VECTOR_THREADS = 2**18, 2**17
"""Of rows with a block each, of which 2000 threads an SM are resident at once; and half of them where units are 16-byte vectors,
which Triton and warps with a row each load as well. H200: add_rmsnorm of 395 rows of 758 bf16, 151,680 threads with a pair each,
takes 2.09 us and 2.72 in Triton; layernorm of 2160 rows of 488 fp16, 138,240 threads with a vector each, 3.07 and, by a warp each
of unknown length, 2.78."""
MOST_INDEX = 2**31
"""Units are counted in 32 bits."""
MOST_LANES = 512
"""Threads of a row."""
MOST_VECTORS, MOST_UNITS = 2, 8
"""Units of a thread of a block with one row, if they are 16-byte vectors, and if they are smaller. H200, layernorm: 7 rows of
3031 fp16, six units a thread, take 1.93 us and 2.31 in Liger's program; 4 rows of 3223 fp32, which would be seven, take 2.61 in
another kernel and 2.34 in Liger's. That eight are faster is an estimate."""
MOST_UNITS_OF_LANE, MOST_ELEMENTS_OF_LANE = 4, 16
"""Of a lane of a warp that has a row, where a block for each would be too many threads; rows of 16-byte vectors may be any number
if a lane has MANY_ROWS_VECTORS of them. Estimates. H200: layernorm of 2160 rows of 488 fp16, two vectors a lane, takes 2.78 us by
a warp each of unknown length, and 2.58 by inductor's kernel; add_rmsnorm of 57,912 rows of 920 fp16 101 by inductor's, a warp a
row with all loads in flight, and 107 to 110 in others; of as many rows of one or two vectors a lane no kernel is faster than
those with slabs or blocks."""
MANY_ROWS_VECTORS = 3
LEAST_WIDTH = 4
"""A lane has two units of fewer elements: a step of a reduction takes as long as several elements."""


@dataclass(frozen=True, slots=True)
class KnownTile:
    """Threads that share a row, rows of a block, and adjacent elements of a load."""

    lanes: int
    rows: int
    width: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.lanes * self.rows

    def blocks(self, m: int) -> int:
        """For m rows."""
        return -(-m // self.rows)

    def defines(self, n: int) -> dict[str, str]:
        """What the kernel is compiled with for rows of n elements."""
        sizes = {"KNOWN_LENGTH": n, "KNOWN_WIDTH": self.width, "ROW_LANES": self.lanes, "ROW_ROWS": self.rows}
        return {name: str(size) for name, size in sizes.items()}


def known_tile(m: int, n: int, itemsize_bytes: int) -> KnownTile | None:
    """The tile for m rows of n elements; None for too many or too long rows. Rows of whole 16-byte vectors, of which a lane of
    a warp has one, three or four, may be any number.

    >>> known_tile(128, 40, 2), known_tile(129, 40, 2)
    (KnownTile(lanes=32, rows=1, width=2), KnownTile(lanes=8, rows=4, width=8))
    >>> known_tile(24, 840, 2), known_tile(8, 80, 4)
    (KnownTile(lanes=128, rows=1, width=8), KnownTile(lanes=32, rows=1, width=4))
    >>> known_tile(3, 261, 2), known_tile(3, 8192, 2), known_tile(3, 16392, 2), known_tile(3, 4097, 2)
    (KnownTile(lanes=288, rows=1, width=1), KnownTile(lanes=512, rows=1, width=8), None, None)
    >>> known_tile(4, 3223, 4), known_tile(2000, 488, 2), known_tile(2160, 488, 2)
    (KnownTile(lanes=480, rows=1, width=1), KnownTile(lanes=64, rows=1, width=8), KnownTile(lanes=32, rows=4, width=8))
    >>> known_tile(3000, 99, 2), known_tile(2**14, 99, 2), known_tile(57_912, 920, 2)
    (KnownTile(lanes=32, rows=4, width=1), None, KnownTile(lanes=32, rows=4, width=8))
    >>> known_tile(16_494, 10, 2), known_tile(2**18, 10, 2), known_tile(2**25, 8, 2)
    (KnownTile(lanes=4, rows=32, width=2), None, KnownTile(lanes=1, rows=128, width=8))
    """
    width = gcd(n, VEC16_BYTES // itemsize_bytes)
    units, is_vector = n // width, width * itemsize_bytes == VEC16_BYTES
    pairs = 1 << (-(-n // 2) - 1).bit_length()
    if itemsize_bytes == 2 and n % 2 == 0 and pairs <= WARP and m * pairs <= FEW_THREADS:
        return KnownTile(pairs, WARP // pairs, 2)
    of_lane, most_threads = 2 if width < LEAST_WIDTH else 1, MOST_THREADS_A_BYTE * itemsize_bytes
    if units <= WARP * of_lane:
        lanes = 1 << (-(-units // of_lane) - 1).bit_length()
        threads = m * lanes
        tile = KnownTile(lanes, (WARP if threads <= FEW_THREADS else THREADS) // lanes, width)
        return tile if threads <= most_threads or (is_vector and m * max(units, lanes) < MOST_INDEX) else None
    each = -(-units // MOST_LANES)
    lanes = WARP * -(-units // (WARP * each))
    most_units, most_loads = (MOST_VECTORS, MOST_VECTOR_THREADS) if is_vector else (MOST_UNITS, MOST_BLOCK_THREADS)
    # Of longer rows of vectors fewer: Triton's programs are as fast (an estimate).
    if each <= most_units and m * lanes * (each if is_vector else 1) <= most_loads:
        return KnownTile(lanes, 1, width)
    of_lane = -(-units // WARP)
    if of_lane > MOST_UNITS_OF_LANE or (not is_vector and of_lane * width > MOST_ELEMENTS_OF_LANE):
        return None
    if m * WARP > most_threads and not (is_vector and of_lane >= MANY_ROWS_VECTORS):
        return None
    return KnownTile(WARP, THREADS // WARP, width) if m * units < MOST_INDEX else None


def block_tile(m: int, n: int, itemsize_bytes: int) -> KnownTile | None:
    """The tile of a block a row; None for many or long rows, and for those that fit into a warp.

    >>> block_tile(77, 935, 2), block_tile(1000, 935, 2), block_tile(77, 9, 2)
    (KnownTile(lanes=480, rows=1, width=1), None, None)
    """
    tile = known_tile(m, n, itemsize_bytes)
    return tile if tile is not None and tile.lanes > WARP else None
