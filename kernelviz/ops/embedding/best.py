"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

import math

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

TILE_BYTES = 16 * 1024
"""Of a row, a program of Triton at once."""
VECTOR_BYTES, SHORT_ROW_UNITS = 16, 64
"""`cuda_vec16_unrolled` copies units: the widest pieces of 2 to 16 bytes of which all rows consist. It has a kernel for the
length of rows of up to SHORT_ROW_UNITS units, and of few rows of up to 1024 16-byte vectors. H200, us by that kernel and in
Triton's tiles: 2.6 million rows of 48 bytes 37.9 and 156; a million of 132 bytes, 4 at once, 106 and 486."""
LONG_UNIT_BYTES = 8
"""Of a longer row, where other kernels are faster with smaller units: 47 rows of 1.95 MB, 2 bytes at once, 93 us and 55 in
tiles; 853 rows of 19,432 bytes, 8 at once, 6.64 us and 7.61 in slices."""
SLICED_ROW_BYTES, ROW_PROGRAM_BYTES = 8 * 1024, 768
"""Of such rows with smaller units, from which they are cut into slices, or have a program of Triton each: estimates. H200:
1,055 rows of 13,964 bytes take 6.56 us in slices, whose stores are of 16 bytes wherever a row begins, and 9.36 in tiles;
7,683 of 11,908 bytes 27.0 and 34.8; 7,757 of 786 bytes 6.01 by programs and 6.69 in tiles. A program starts each 0.6 ns, in
which it must move a row."""
FEWEST_BYTES = 16
"""Of all rows, up to which each has a program of Triton: an estimate. H200: 3 rows of one fp16 take 1.43 us so, and 1.53 by
units; one row of 19 fp32 takes 1.50 and 1.46."""
BLOCK_ROW_BYTES = 256 * 16
"""A row with a 16-byte vector for each of the 256 threads of a block."""


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """Units of CUDA C++, except for blocks of CUDA C++ for rows of whole 16-byte vectors from 4 KiB on, slices for rows of
    more than 64 KiB and uneven ones from 8 KiB on, and programs or tiles of Triton for shorter uneven ones and for at most 16
    bytes in all.

    Rows of more than 64 KiB are cut into slices where ids are no fewer than rows or rows begin within a vector: slices read
    a row that several ids name once. Uneven rows are of more than 64 units of fewer than 8 bytes; they have a program each
    from 768 bytes on. So have rows of more than 64 units and at most 16 KiB that begin within vectors, if they are no more
    than the multiprocessors. Blocks are for ids that are more than the multiprocessors, because few blocks share the bytes of a
    row.

    Units of few rows are compiled for their length and have no branch. H200: one row of 19 fp32 takes 1.46 us so and 1.50 by a
    program of Triton, 16 rows of 4096 bf16 1.71 and 1.75; 1,366 rows of 48 bytes take 1.89 us so and 1.92 in tiles.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (65536, 4096), (65536, 64), (4, 2**27), (65536, 3), (65536, 131), (273, 4438853), (1055, 6983))
    >>> [rows(Problem(op="embedding", sizes={"v": 65536, "t": t, "d": d}, dtype="bf16"), H200)[0] for t, d in shapes]
    ['cuda_vec16_unrolled', 'cuda_row_vec16', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', \
'triton_tile', 'cuda_slices', 'cuda_slices']
    >>> rows(Problem(op="gather", sizes={"v": 2, "t": 4, "d": 2**27}, dtype="bf16"), H200)[0]
    'cuda_slices'
    >>> shapes = ((7757, 393), (100, 393), (3, 1))
    >>> [rows(Problem(op="gather", sizes={"v": 5311, "t": t, "d": d}, dtype="bf16"), H200)[0] for t, d in shapes]
    ['triton_row', 'triton_row', 'triton_row']
    """
    of_row, t = row_bytes(problem, "d"), problem.sizes["t"]
    few, even = t <= card.multiprocessors, whole_vectors(problem, "d")
    unit = math.gcd(of_row, VECTOR_BYTES)
    many_units = not even and of_row > SHORT_ROW_UNITS * unit
    uneven = many_units and unit < LONG_UNIT_BYTES
    if t * of_row <= FEWEST_BYTES:
        return ("triton_row", "cuda_vec16_unrolled")
    if few and of_row <= TILE_BYTES:
        return ("triton_row", "cuda_row_vec16") if many_units else ("cuda_vec16_unrolled", "triton_row")
    shared = t >= problem.sizes["v"]  # several ids name one row
    if (of_row > 4 * TILE_BYTES and (shared or not even)) or (uneven and of_row >= SLICED_ROW_BYTES):
        return ("cuda_slices", "triton_tile", "cuda_vec16_unrolled")
    if uneven:
        by_program = of_row >= ROW_PROGRAM_BYTES
        return ("triton_row", "triton_tile") if by_program else ("triton_tile", "cuda_vec16_unrolled")
    if even and of_row >= BLOCK_ROW_BYTES and not few:
        return ("cuda_row_vec16", "cuda_vec16_unrolled")
    return ("cuda_vec16_unrolled", "triton_tile")
