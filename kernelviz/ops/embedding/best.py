"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

import math

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

TILE_BYTES = 16 * 1024
"""Of a row, a program of Triton at once."""
FEW_TILE_BYTES = 512
"""Of all rows, an SM. H200: 1,366 rows of 48 bytes take 1.94 us in tiles and 2.09 by pieces."""
VECTOR_BYTES, SHORT_ROW_UNITS = 16, 64
"""`cuda_vec16_unrolled` copies units: the widest pieces of 2 to 16 bytes of which all rows consist. It has a kernel for the
length of rows of up to SHORT_ROW_UNITS units. H200, us by that kernel and in Triton's tiles: 2.6 million rows of 48 bytes 37.9
and 156; a million of 132 bytes, 4 at once, 106 and 486."""
LONG_UNIT_BYTES = 8
"""Of a longer row, where tiles are faster with smaller units: 47 rows of 1.95 MB, 2 bytes at once, 93 us and 55 in tiles. Units
of 8 bytes were not measured there."""
BLOCK_ROW_BYTES = 256 * 16
"""A row with a 16-byte vector for each of the 256 threads of a block."""


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """A program of Triton a row for few rows of at most 16 KiB, slices of all rows for long ones, Triton's tiles or units of CUDA
    C++ for short ones, a block of CUDA C++ a row from 4 KiB on.

    Few are no more than the multiprocessors; long ones have more than 64 KiB, and ids are no fewer than rows or rows begin
    within a vector. Of other rows that are no whole 16-byte vectors, tiles take those of more than 64 units of fewer than 8
    bytes. Of rows of whole vectors, tiles take rows of less than 4 KiB that are at most 512 bytes an SM together, and blocks rows
    from 4 KiB on where ids are more than the multiprocessors. Units take the rest.

    A block has idle threads in a shorter row, and few blocks share the bytes of longer ones. Slices read a row that several ids
    name once.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (65536, 4096), (65536, 64), (4, 2**27), (65536, 3), (65536, 131), (273, 4438853))
    >>> [rows(Problem(op="embedding", sizes={"v": 65536, "t": t, "d": d}, dtype="bf16"), H200)[0] for t, d in shapes]
    ['triton_row', 'cuda_row_vec16', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', \
'triton_tile', 'cuda_slices']
    >>> rows(Problem(op="gather", sizes={"v": 2, "t": 4, "d": 2**27}, dtype="bf16"), H200)[0]
    'cuda_slices'
    """
    of_row = row_bytes(problem, "d")
    if problem.sizes["t"] <= card.multiprocessors and of_row <= TILE_BYTES:
        return ("triton_row", "cuda_row_vec16")
    shared = problem.sizes["t"] >= problem.sizes["v"]  # several ids name one row
    if of_row > 4 * TILE_BYTES and (shared or not whole_vectors(problem, "d")):
        return ("cuda_slices", "triton_tile", "cuda_vec16_unrolled")
    if not whole_vectors(problem, "d"):
        unit = math.gcd(of_row, VECTOR_BYTES)
        in_units = of_row <= SHORT_ROW_UNITS * unit or unit >= LONG_UNIT_BYTES
        return ("cuda_vec16_unrolled", "triton_tile") if in_units else ("triton_tile", "cuda_vec16_unrolled")
    if problem.sizes["t"] * of_row <= FEW_TILE_BYTES * card.multiprocessors and of_row < BLOCK_ROW_BYTES:
        return ("triton_tile", "cuda_vec16_unrolled")
    if of_row >= BLOCK_ROW_BYTES and problem.sizes["t"] > card.multiprocessors:
        return ("cuda_row_vec16", "cuda_vec16_unrolled")
    return ("cuda_vec16_unrolled", "triton_tile")
