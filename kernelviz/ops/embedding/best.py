"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

import math

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes

VECTOR_BYTES, SHORT_ROW_UNITS = 16, 64
"""`cuda_vec16_unrolled` copies units: the widest pieces of 2 to 16 bytes of which all rows consist. H200, us by its kernels and
in Triton's tiles: 2.6 million rows of 48 bytes 37.9 and 156; 10.9 million of 100 bytes, by vectors of the output that are
assembled of 4-byte units, 360 and 460; 25,546 of 1,026 bytes, of 16-byte vectors that are shifted, 14.3 and 19.7."""
FEWEST_BYTES = 16
"""Of several rows, up to which each has a program of Triton. H200: 8 rows of one fp16 take 1.13 us so and 1.27 by units, 2 of 2
1.05 and 1.13; one of 3 bf16 takes 1.50 and 1.39, one of 4 fp32 1.31 and 1.22."""
SMALL_UNIT_BYTES = 2
"""Units of which rows in other kernels have fewer instructions for their bytes."""
FEW_ROW_BYTES = 8192
"""Of few rows of many small units, up to which each has a program of Triton. H200: 10 rows of 202 bytes take 1.34 us so and 1.51
by units with a kernel for any length, 59 of 674 bytes 1.39 and 1.49 with one for the length; 18 rows of 548 bytes, 4 at once,
take 1.31 and 1.28."""
SLICED_ROW_BYTES, SLICED_BYTES = 16 * 1024, 2**20
"""Of a row, and of all, from which slices have enough bytes: H200, 2 rows of 90 KB take 1.91 us in slices and 1.78 by units."""
SHIFTED_ROW_BYTES = 2048
"""The same of rows with smaller units, whose vectors a thread of a slice shifts by what is known for the row. H200: 6,290 rows of
8,318 bytes take 16.1 us in slices and 27.2 by units, 25,546 of 1,026 bytes 17.3 and 14.3: lines through these times, a vector and
a block each, meet at 1.2 KB; 12,501 ids of 7 rows of 12,904 bytes, of 8-byte units, 39.8 and 49.0."""
SHARED_TABLE_BYTES = 8 * 2**20
"""Of whole vectors that several ids name, from which the L2 does not keep all of them beside what is written. H200, us in slices
and by units: 2319 ids of 4 rows of 250 KB (1 MB) 148 and 139, 40 of 8 rows of 748 KB (6 MB) 10.8 and 10.7, 4096 of 128 rows of
64 KiB (8 MB) 70.8 and 77.0, 352 of 8 rows of 2 MB 206 and 254, 192 of 16 rows of 3.6 MB 215 and 560; 26 of 22 rows of 4.8 MB,
which are named 1.2 times, 59.6 and 57.6. Smaller tables of 4- and 8-byte units are an estimate: 903 ids of 2 rows of 22 KB took
7.29 in slices and 11.4 in tiles."""
BLOCK_ROW_BYTES, LONGEST_BLOCK_ROW_BYTES, BLOCKS_BYTES = 256 * 16, 2**16, 2**28
"""A row with a 16-byte vector for each of the 256 threads of a block, one with 16 of them, and bytes of the output, from which a
block for each row is as fast as other kernels: H200, 131,072 rows of 8 KiB take 238 us by blocks and 239 by units with four
vectors a thread, 4096 of 16 KiB 17.6, 17.8 and 16.9 in torch.compile, whose threads have two vectors, as those of the units now,
14,680 of 50 KB 186 and 216. The bytes are estimates."""


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """Units of CUDA C++, except for programs of Triton for several rows of at most 16 bytes in all, and for few rows of many
    2-byte units and up to 8 KiB; slices for 1
    MiB of rows of more than 2 KiB that have 2-byte units, or of others whose ids are half as many again as rows, whole vectors
    only of more than 16 KiB in a table of at least 8 MiB; and blocks for 256 MiB of rows of 4 to 64 KiB in whole vectors.

    Units are the widest pieces of 2 to 16 bytes of which all rows consist, and many are more than 64; rows are few up to the
    number of multiprocessors. Slices read a row that several ids name once.

    Units of few rows are compiled for their length and have no branch. H200: one row of 19 fp32 takes 1.46 us so and 1.50 by a
    program of Triton, 16 rows of 4096 bf16 1.71 and 1.75; 1,366 rows of 48 bytes take 1.89 us so and 1.92 in Triton's tiles, 152
    million of 2 bytes 366 and 740.

    >>> from kernelviz.ops.catalog.best import H200
    >>> def best(v, t, d, dtype="bf16"):
    ...     return rows(Problem(op="embedding", sizes={"v": v, "t": t, "d": d}, dtype=dtype), H200)[0]
    >>> {best(65536, t, d) for t, d in ((16, 4096), (65536, 64), (4, 2**27), (65536, 3), (65536, 131), (8192, 4096))}
    {'cuda_vec16_unrolled'}
    >>> [best(*sizes) for sizes in ((65536, 273, 4438853), (2, 4, 2**27), (4, 2319, 125264), (1, 8, 2**25), (22, 5, 5858426))]
    ['cuda_slices', 'cuda_slices', 'cuda_vec16_unrolled', 'cuda_slices', 'cuda_vec16_unrolled']
    >>> best(65536, 65536, 4096)
    'cuda_row_vec16'
    >>> [best(*sizes) for sizes in ((5311, 100, 393), (5311, 3, 1), (1, 1, 1), (5, 1, 3), (3, 151943914, 1))]
    ['triton_row', 'triton_row', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled']
    """
    of_row, v, t = row_bytes(problem, "d"), problem.sizes["v"], problem.sizes["t"]
    unit, in_all = math.gcd(of_row, VECTOR_BYTES), t * of_row
    small = unit == SMALL_UNIT_BYTES
    few_of_many_units = t <= card.multiprocessors and small and SHORT_ROW_UNITS * unit < of_row <= FEW_ROW_BYTES
    if v > 1 and ((t > 1 and in_all <= FEWEST_BYTES) or few_of_many_units):
        return ("triton_row", "cuda_vec16_unrolled")
    shared = 2 * t >= 3 * v
    if unit < VECTOR_BYTES:
        sliced = of_row > SHIFTED_ROW_BYTES and (small or shared)
    else:
        sliced = of_row > SLICED_ROW_BYTES and shared and v * of_row >= SHARED_TABLE_BYTES
    if sliced and in_all >= SLICED_BYTES:
        return ("cuda_slices", "triton_tile", "cuda_vec16_unrolled")
    if unit == VECTOR_BYTES and BLOCK_ROW_BYTES <= of_row <= LONGEST_BLOCK_ROW_BYTES and in_all >= BLOCKS_BYTES:
        return ("cuda_row_vec16", "cuda_vec16_unrolled")
    return ("cuda_vec16_unrolled", "triton_tile")
