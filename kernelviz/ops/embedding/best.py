"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

import math

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

VECTOR_BYTES, SHORT_ROW_UNITS = 16, 64
"""`cuda_vec16_unrolled` copies units: the widest pieces of 2 to 16 bytes of which all rows consist. H200, us by its kernels for
the length of a row and in Triton's tiles: 2.6 million rows of 48 bytes 37.9 and 156; a million of 132 bytes, 4 at once, 106 and
486. Its kernels that assemble vectors of the output of units, and those for rows of more than 64 units, were not measured
yet."""
FEWEST_BYTES = 16
"""Of all rows, up to which each has a program of Triton. H200: 8 rows of one fp16 take 1.13 us so and 1.27 by units, 2 of 2 1.05
and 1.13; one of 3 bf16 takes 1.50 and 1.39."""
FEW_ROW_BYTES = 8192
"""Of few rows of many units, up to which each has a program of Triton. H200: 10 rows of 202 bytes take 1.34 us so and 1.51 by
units with a kernel for any length, one of 14,676 bytes 1.78 and 1.66."""
SLICED_ROW_BYTES, SLICED_BYTES = 16 * 1024, 2**20
"""Of a row, and of all, from which slices have enough bytes: H200, 2 rows of 90 KB take 1.91 us in slices and 1.78 by units."""
SHARED_TABLE_BYTES = 8 * 2**20
"""Of rows that several ids name, from which the L2 does not keep all of them beside what is written. H200, us in slices and by
units: 2319 ids of 4 rows of 250 KB (1 MB) 148 and 139, 40 of 8 rows of 748 KB (6 MB) 10.8 and 10.7, 4096 of 128 rows of 64 KiB
(8 MB) 70.8 and 77.0, 352 of 8 rows of 2 MB 206 and 254, 192 of 16 rows of 3.6 MB 215 and 560. Where ids are no more than rows, 3
rows of 107 MB take 159 and 149."""
SLICED_UNIT_BYTES = 8
"""Of smaller units, whose vectors a thread of a slice shifts: H200, 212 ids of 26 rows of 38 KB take 4.2 us in slices and 6.4 in
tiles. Against vectors that are assembled of them nothing was measured yet."""
BLOCK_ROW_BYTES, BLOCKS_BYTES = 256 * 16, 2**26
"""A row with a 16-byte vector for each of the 256 threads of a block; and bytes of the output, from which a block for each row
is as fast as a kernel for the length of a row: H200, 256 rows of 16 KiB take 4.03 us by blocks and 3.47 by units, 1024 8.99 and
8.83, 4096 17.6 and 17.8; 131,072 of 8 KiB 238 and 239."""
TILED_ROW_BYTES, TILED_ROWS = 2, 2**22
"""Of rows of one 16-bit element, which a thread copies two at once. H200: 96 million take 233 us so and 217 in Triton's tiles,
63,903 take 2.99 and 3.18. The number is an estimate."""


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """Units of CUDA C++, except for programs of Triton for at most 16 bytes in all, and for few rows of many units and up to 4
    KiB; tiles of Triton for 2^22 rows of one 16-bit element; slices for 1 MiB of rows of more than 16 KiB, if their units are
    below 8 bytes or if several ids name each row of a table of 8 MiB or more; and blocks for 64 MiB of rows of 4 to 16 KiB in
    whole vectors.

    Units are the widest pieces of 2 to 16 bytes of which all rows consist, and many are more than 64; rows are few up to the
    number of multiprocessors. Slices read a row that several ids name once. No id of a table of one row is read by units, so
    only rows of 8 MiB are read in slices there.

    Units of few rows are compiled for their length and have no branch. H200: one row of 19 fp32 takes 1.46 us so and 1.50 by a
    program of Triton, 16 rows of 4096 bf16 1.71 and 1.75; 1,366 rows of 48 bytes take 1.89 us so and 1.92 in tiles.

    >>> from kernelviz.ops.catalog.best import H200
    >>> def best(v, t, d, dtype="bf16"):
    ...     return rows(Problem(op="embedding", sizes={"v": v, "t": t, "d": d}, dtype=dtype), H200)[0]
    >>> [best(65536, t, d) for t, d in ((16, 4096), (65536, 64), (4, 2**27), (65536, 3), (65536, 131), (1055, 6983))]
    ['cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', \
'cuda_vec16_unrolled']
    >>> best(65536, 65536, 4096), best(65536, 273, 4438853), best(2, 4, 2**27), best(4, 2319, 125264), best(1, 8, 2**25)
    ('cuda_row_vec16', 'cuda_slices', 'cuda_slices', 'cuda_vec16_unrolled', 'cuda_slices')
    >>> best(5311, 100, 393), best(5311, 3, 1), best(1, 1, 1), best(8, 96353920, 1)
    ('triton_row', 'triton_row', 'cuda_vec16_unrolled', 'triton_tile')
    """
    of_row, v, t = row_bytes(problem, "d"), problem.sizes["v"], problem.sizes["t"]
    few, even = t <= card.multiprocessors, whole_vectors(problem, "d")
    unit, in_all = math.gcd(of_row, VECTOR_BYTES), t * of_row
    many_units = not even and of_row > SHORT_ROW_UNITS * unit
    if v > 1 and (in_all <= FEWEST_BYTES or (few and many_units and of_row <= FEW_ROW_BYTES)):
        return ("triton_row", "cuda_vec16_unrolled")
    if of_row <= TILED_ROW_BYTES and t >= TILED_ROWS:
        return ("triton_tile", "cuda_vec16_unrolled")
    if of_row > SLICED_ROW_BYTES and in_all >= SLICED_BYTES:
        shared = t > v and v * of_row >= SHARED_TABLE_BYTES
        if shared or (unit < SLICED_UNIT_BYTES and v > 1):
            return ("cuda_slices", "triton_tile", "cuda_vec16_unrolled")
    if even and BLOCK_ROW_BYTES <= of_row <= SLICED_ROW_BYTES and in_all >= BLOCKS_BYTES:
        return ("cuda_row_vec16", "cuda_vec16_unrolled")
    return ("cuda_vec16_unrolled", "triton_tile")
