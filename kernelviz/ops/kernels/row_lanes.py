"""Few short rows, of which each has some lanes of a warp in a kernel that knows the length of a row: how they are shared."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelviz.ops.kernels.vec16 import VEC16_BYTES

WARP = 32
FEW_THREADS = 2**12
"""Up to about a warp an SM of an H200, a block is one warp, so that as many SMs as possible load; else four. An estimate."""
MOST_THREADS = 2**17
"""About 1000 an SM of an H200, which are resident at once. An estimate. H200, rmsnorm_quantize_fp8 of one element: 1.25 to 1.31
us by a thread, 1.53 by the slab kernel, which has 4 KiB of code; fp16, one row of 26: 2.05 by that, 1.34 by torch.compile."""
MOST_UNITS, MOST_ELEMENTS = 4, 16
"""Of a lane: each more is code to fetch. An estimate."""


@dataclass(frozen=True, slots=True)
class RowLanes:
    """Elements of an access, lanes of a row, blocks and threads of a block."""

    unit: int
    lanes: int
    blocks: int
    threads: int

    def defines(self, n: int, itemsize_bytes: int) -> dict[str, str]:
        """Macros of a kernel for rows of n elements."""
        shape = {"LENGTH": n, "UNIT": self.unit, "ROW_LANES": self.lanes, "BLOCK_THREADS": self.threads}
        return {macro: str(value) for macro, value in (shape | {"ELEMENT_BYTES": itemsize_bytes}).items()}


def row_lanes(m: int, n: int, itemsize_bytes: int) -> RowLanes | None:
    """How m rows of n elements are shared; None for more or longer ones than the kernel is for.

    A lane has one unit of four or eight elements, or two smaller ones, and more of a row that is longer than a warp has of these:
    a step of a reduction takes as long as several elements.

    >>> row_lanes(1, 1, 4), row_lanes(1, 26, 2)
    (RowLanes(unit=1, lanes=1, blocks=1, threads=32), RowLanes(unit=2, lanes=8, blocks=1, threads=32))
    >>> row_lanes(128, 128, 2), row_lanes(22507, 4, 4)
    (RowLanes(unit=8, lanes=16, blocks=64, threads=32), RowLanes(unit=4, lanes=1, blocks=176, threads=128))
    >>> row_lanes(1, 129, 2), row_lanes(2**20, 4, 4)
    (None, None)
    """
    unit = math.gcd(n, VEC16_BYTES // itemsize_bytes)
    units = n // unit
    each = 2 if unit < 4 else 1
    lanes = min(WARP, 1 << (-(-units // each) - 1).bit_length())
    of_lane = -(-units // lanes)
    if of_lane > MOST_UNITS or of_lane * unit > MOST_ELEMENTS or m * lanes > MOST_THREADS:
        return None
    threads = WARP if m * lanes <= FEW_THREADS else 4 * WARP
    return RowLanes(unit, lanes, -(-m * lanes // threads), threads)
