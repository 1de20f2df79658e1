"""The variant that a user of a look-up of rows gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

TILE_BYTES = 16 * 1024
"""Of a row, a program of Triton at once."""
FEW_TILE_BYTES = 512
"""Of all rows, an SM. H200: 1,366 rows of 48 bytes take 1.94 us in tiles and 2.09 by pieces."""
UNIT_BYTES, SHORTEST_BYTES = 8, 4
"""CUDA C++ (`cuda_vec16_unrolled`, pieces) copies 8 bytes at once of a row of a multiple of UNIT_BYTES, where Triton
(`triton_tile`, tiles) copies single elements.
A row of at most SHORTEST_BYTES is one copy. H200, us by pieces and in tiles: 32,768 rows of 4
bytes 2.15 and 2.23; 1,236 of 8 bytes 1.55 and 1.57; 166 million of 2 bytes 4638 and 4649; 2.6 million of 48 bytes 45 and 95. By
other units tiles are faster: 65,241 of 12 bytes 1.99 and 1.96; 47 of 1.95 MB, 2 bytes at once, 93 and 55. Multiples of 8 that
are longer than 48 bytes were not measured."""
BLOCK_ROW_BYTES = 256 * 16
"""A row with a 16-byte vector for each of the 256 threads of a block."""


def rows(problem: Problem, card: Card) -> tuple[str, ...]:
    """A program of Triton a row where rows of at most 16 KiB are no more than the multiprocessors; slices of all rows where a
    row has more than 64 KiB, and ids are no fewer than rows or rows begin within a vector; Triton's tiles where other rows
    are no whole 16-byte vectors (but pieces for multiples of 8 bytes and rows of at most 4), or shorter than 4 KiB and all of
    them at most 512 bytes an SM; a block of CUDA C++ a row from 4 KiB on where ids are more than the multiprocessors, else
    pieces of all rows.

    A block has idle threads in a shorter row, and few blocks share the bytes of longer ones. Short rows that are no whole vectors
    are copied by CUDA C++ in units of 2 to 8 bytes, each of which takes a division. Slices read a row that several ids name once.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (65536, 4096), (65536, 64), (4, 2**27), (65536, 3), (65536, 2), (273, 4438853))
    >>> [rows(Problem(op="embedding", sizes={"v": 65536, "t": t, "d": d}, dtype="bf16"), H200)[0] for t, d in shapes]
    ['triton_row', 'cuda_row_vec16', 'cuda_vec16_unrolled', 'cuda_vec16_unrolled', 'triton_tile', \
'cuda_vec16_unrolled', 'cuda_slices']
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
        units = of_row % UNIT_BYTES == 0 or of_row <= SHORTEST_BYTES
        return ("cuda_vec16_unrolled", "triton_tile") if units else ("triton_tile", "cuda_vec16_unrolled")
    if problem.sizes["t"] * of_row <= FEW_TILE_BYTES * card.multiprocessors and of_row < BLOCK_ROW_BYTES:
        return ("triton_tile", "cuda_vec16_unrolled")
    if of_row >= BLOCK_ROW_BYTES and problem.sizes["t"] > card.multiprocessors:
        return ("cuda_row_vec16", "cuda_vec16_unrolled")
    return ("cuda_vec16_unrolled", "triton_tile")
