"""Tiles of `headers/split_rows.cuh`: how many blocks share each of a few long rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.kernels import nvrtc

if TYPE_CHECKING:
    from torch import Tensor

VEC16_BYTES = 16
BLOCKS_PER_MULTIPROCESSOR = 4
"""Of 512 threads each: all that an SM holds."""
Chunks = Sequence[tuple[int, int]]
"""Threads of a block and 16-byte vectors of each, the largest chunk of a row first."""
CHUNKS: Chunks = ((512, 2),)
SMALL_CHUNKS: Chunks = ((512, 2), (256, 2), (256, 1))
"""For rows that are few and not so long that every SM would have a block of 512 threads."""


@dataclass(frozen=True, slots=True)
class RowSplit:
    """Blocks that share a row, their threads, and 16-byte vectors that each thread loads at once."""

    parts: int
    lanes: int = 512
    vectors: int = 2

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """Macros that a kernel is compiled with for rows of this matrix."""
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "ROW_LANES": str(self.lanes),
            "ROW_VECTORS": str(self.vectors),
            "ROW_ALIGNED": "true" if x_MN.shape[1] * x_MN.element_size() % VEC16_BYTES == 0 else "false",
        }


def row_split(m: int, n: int, itemsize_bytes: int, count: int, *, chunks: Chunks = CHUNKS) -> RowSplit:
    """How m rows of n elements are divided on a GPU of `count` SMs: so that each SM has four blocks, of a chunk at least.

    The last of `chunks`, or the first with which every SM has a block.

    >>> row_split(8, 3_508_120, 2, 132), row_split(1, 100, 2, 132), row_split(1000, 3_508_120, 2, 132)
    (RowSplit(parts=66, lanes=512, vectors=2), RowSplit(parts=1, lanes=512, vectors=2), RowSplit(parts=1, lanes=512, vectors=2))
    >>> [row_split(m, n, 2, 132, chunks=SMALL_CHUNKS) for m, n in ((8, 100_000), (3, 12_623))]
    [RowSplit(parts=25, lanes=256, vectors=2), RowSplit(parts=7, lanes=256, vectors=1)]
    """
    split = RowSplit(1)
    for lanes, vectors in chunks:
        of_row = -(-n * itemsize_bytes // (lanes * vectors * VEC16_BYTES))
        split = RowSplit(max(1, min(of_row, BLOCKS_PER_MULTIPROCESSOR * count // m)), lanes, vectors)
        if m * split.parts >= count:
            break
    return split if split.parts > 1 else RowSplit(1)
