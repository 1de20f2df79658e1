"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

SLICED_BYTES = 2**20
"""Of all rows, from which slices have enough bytes. H200, 2 rows of 90 KB take 1.91 us in slices and 1.78 by units."""
UNALIGNED_ROW_BYTES = 2048
"""Of rows whose vectors a thread of a slice shifts by what is known for the row. H200: 6,290 ids of 30 rows of 8,318 bytes take
16.1 us in slices and 27.2 by units, 25,546 of 1,026 bytes 17.3 and 14.3."""
ALIGNED_ROW_BYTES, TABLE_BYTES = 2**14, 2**23
"""Of whole vectors, from which on L2 does not keep the table beside what is written. H200: 4096 ids of 128 rows of 64 KiB (8 MiB)
take 70.8 us in slices and 77.0 by units, 192 of 16 rows of 3.6 MB 215 and 560, 2319 of 4 rows of 250 KB (1 MB) 148 and 139."""

PROGRAM_ROWS, PROGRAM_BYTES = range(32, 513), range(2**9, 2**14 + 1)
"""Ids, and bytes of a row, of which a program reads its id once. H200: 118 rows of 1,462 bytes take 1.83 us so and 1.94 by units,
200 of 15,072 2.93 and 3.14, but 1002 of 648 1.92 and 1.77, 2 of 1,084 1.61 and 1.47, 8 of 18,656 2.24 and 1.71."""

LONG_ROW_BYTES, MANY_ROWS = 4096, 8192
"""Of a row of whole vectors, from which on each id has a program, and ids beyond which each has a block. H200, rows of 8 KiB (no
others were measured): 1024 ids take 5.2 us by programs and 5.4 by units, 4096 16.5 and 17.0; 16,384 take 66.2 by programs, 68.3
by units and 64.6 by blocks, 65,536 266, 274 and 257."""


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """Slices, if ids are 1.2 times the table's rows and read 1 MiB, for rows beyond 2 KiB that are not whole 16-byte vectors, or
    beyond 16 KiB in a table of 8 MiB; else Triton for 32 to 512 ids of 0.5 to 16 KiB, and up to 8192 of whole vectors of 4 KiB; a
    block for each of more; else the widest units of CUDA C++.

    The 1.2 are an estimate. A slice is read once for all ids of its row. H200: 2.6 million rows of 48 bytes take 37.9 us by units
    and 156 in Triton's tiles, 14,680 ids of 16 rows of 51 KB 216 and 185; 32,768 rows of 1024 bf16 16.7, and 16.0 by a program of
    Triton each.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((65536, 16, 4096), (65536, 4096, 4096), (65536, 16_384, 4096), (1064, 200, 7536), (27, 6060, 40_810))
    >>> shapes = (*shapes, (30, 6290, 4159), (4, 2319, 125_264), (1, 8, 2**25))
    >>> problems = [Problem(op="embedding", sizes=dict(zip("vtd", shape)), dtype="bf16") for shape in shapes]
    >>> [rows(problem, H200)[0] for problem in problems]
    ['cuda_vec16_unrolled', 'triton_row', 'cuda_row_vec16', 'triton_row', 'cuda_slices', 'cuda_slices', \
'cuda_vec16_unrolled', 'cuda_slices']
    """
    of_row, v, t = row_bytes(problem, "d"), problem.sizes["v"], problem.sizes["t"]
    if whole_vectors(problem, "d"):
        sliced = of_row > ALIGNED_ROW_BYTES and v * of_row >= TABLE_BYTES
    else:
        sliced = of_row > UNALIGNED_ROW_BYTES
    if sliced and t * of_row >= SLICED_BYTES and 5 * t >= 6 * v:
        return ("cuda_slices", "cuda_vec16_unrolled", "triton_tile", "triton_row")
    long = whole_vectors(problem, "d") and of_row >= LONG_ROW_BYTES
    if long and t > MANY_ROWS and of_row in PROGRAM_BYTES:
        return ("cuda_row_vec16", "cuda_slices", "triton_row", "triton_tile", "cuda_vec16_unrolled")
    if (t in PROGRAM_ROWS or (long and t in range(PROGRAM_ROWS.start, MANY_ROWS + 1))) and of_row in PROGRAM_BYTES:
        return ("triton_row", "cuda_vec16_unrolled", "triton_tile", "cuda_slices", "cuda_row")
    return ("cuda_vec16_unrolled", "triton_tile", "triton_row", "cuda_slices", "cuda_row")
