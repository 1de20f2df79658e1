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


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """Slices, if ids are at least 1.2 times the table's rows and read 1 MiB, for rows beyond 2 KiB that are not whole 16-byte
    vectors, and for whole ones beyond 16 KiB in a table of at least 8 MiB; else units of CUDA C++, the widest pieces of 2 to
    16 bytes of which rows consist.

    The 1.2 are an estimate. A slice is read once for all ids of its row. H200: 2.6 million rows of 48 bytes take 37.9 us by units
    and 156 in Triton's tiles, 14,680 ids of 16 rows of 51 KB 216 and 185; 32,768 rows of 1024 bf16 16.7, and 16.0 by a program of
    Triton each.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((65536, 16, 4096), (65536, 65536, 64), (27, 6060, 40_810), (30, 6290, 4159), (4, 2319, 125_264), (1, 8, 2**25))
    >>> problems = [Problem(op="embedding", sizes=dict(zip("vtd", shape)), dtype="bf16") for shape in shapes]
    >>> [rows(problem, H200)[0] for problem in problems]
    ['cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_slices', 'cuda_slices', 'cuda_vec16_unrolled', 'cuda_slices']
    """
    of_row, v, t = row_bytes(problem, "d"), problem.sizes["v"], problem.sizes["t"]
    if whole_vectors(problem, "d"):
        sliced = of_row > ALIGNED_ROW_BYTES and v * of_row >= TABLE_BYTES
    else:
        sliced = of_row > UNALIGNED_ROW_BYTES
    if sliced and t * of_row >= SLICED_BYTES and 5 * t >= 6 * v:
        return ("cuda_slices", "cuda_vec16_unrolled", "triton_tile", "triton_row")
    return ("cuda_vec16_unrolled", "triton_tile", "triton_row", "cuda_slices", "cuda_row")
