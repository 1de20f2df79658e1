"""Which rows of medium length the quantising ops copy in slabs, and how large those are."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from kernelviz.ops.kernels.row_slabs import BARRIER_BYTES, SHARED_BYTES, RegisterArrays, RowSlab, SlabRing
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

SHORTEST_ROW_BYTES, LONGEST_ROW_BYTES = 256, 4096
"""Shorter rows have other slabs, and longer ones a block each: starting it takes less than moving the row."""
RING = SlabRing(threads=256, stages=2, slab_bytes=0)
"""A warp a row. Two to four blocks an SM have 64 to 130 KiB in flight while they process as much."""
SLABS_A_MULTIPROCESSOR = 4
"""With fewer, the first slabs are most of what a block does. An estimate."""
BLOCK_BYTES = 1024
"""Of shared memory that each block takes beside its own."""


@dataclass(frozen=True, slots=True)
class NumberSlab:
    """A slab of rows and the bytes of its 8-bit numbers."""

    slab: RowSlab
    number_bytes: int

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block: the ring, two buffers of numbers, and the barriers."""
        return self.slab.shared_bytes + 2 * self.number_bytes

    @property
    def opt_in_bytes(self) -> int:
        """The most that a kernel with the same macros needs for any length of rows."""
        longest_bytes = self.slab.rows * self.slab.units * self.slab.unit_bytes * 32
        return min(SHARED_BYTES, self.slab.ring.stages * (longest_bytes + BARRIER_BYTES) + longest_bytes)


def number_slab(m: int, n: int, itemsize_bytes: int, count: int, *, weighted: bool) -> NumberSlab | None:
    """The slab for m rows of n elements on a GPU of `count` SMs; None for rows that are shorter, longer, or few.

    >>> found = number_slab(276_663, 674, 4, 132, weighted=False)
    >>> found.slab.rows, found.slab.units, found.slab.tensor_bytes, found.shared_bytes
    (8, 11, 21568, 53936)
    >>> number_slab(1000, 674, 4, 132, weighted=False), number_slab(10**6, 1025, 4, 132, weighted=False)
    (None, None)
    """
    row_bytes = n * itemsize_bytes
    if not SHORTEST_ROW_BYTES < row_bytes <= LONGEST_ROW_BYTES:
        return None
    # Numbers of a slab are whole vectors, and then its elements are, too.
    rows = max(RING.threads // 32, VEC16_BYTES // math.gcd(VEC16_BYTES, n))
    if m < SLABS_A_MULTIPROCESSOR * count * rows:
        return None
    unit_bytes = math.gcd(VEC16_BYTES, row_bytes)
    units = -(-row_bytes // (unit_bytes * 32))
    arrays = RegisterArrays(numbers=1, stored=int(weighted))
    slab = RowSlab(
        rows,
        32,
        unit_bytes,
        units,
        rows * row_bytes,
        full=row_bytes % (unit_bytes * 32) == 0,
        registers=arrays.registers(units, unit_bytes, itemsize_bytes),
        ring=RING,
    )
    sized = NumberSlab(slab, rows * n)
    if 2 * (sized.shared_bytes + BLOCK_BYTES) > SHARED_BYTES:
        # An SM has one block.
        sized = replace(sized, slab=replace(slab, ring=replace(RING, threads=2 * RING.threads)))
    return sized if sized.shared_bytes <= SHARED_BYTES else None
