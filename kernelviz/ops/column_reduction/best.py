"""The variant that a user of `column_sum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

FEW_ROWS = 8
"""Rows that one thread has in flight at once."""
FEW_COLUMNS = 256
"""With more columns, the last block has too much to add up: 132 blocks have 135 KB of sums for 256 columns, which take 2 µs."""
CLUSTER_BYTES = 256 * 1024
"""Of a matrix that one cluster adds up."""
ROWS_OF_WIDE = 64
"""With more rows, it costs time that one SM may have a block more than another: each block has all rows of its columns."""
WIDE_BLOCKS = 2
"""Blocks of 256 threads for each SM that a row must have, so that memory is busy without parts of the rows."""


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass for up to 8 rows and 64 wide aligned ones; up to 256 columns, the matrix as one vector, by one cluster if it has
    at most 256 KiB; else parts of the rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((2, 1555024), (1765, 9361), (432734152, 1), (64, 2**20), (4864, 8))
    >>> [columns(Problem(op="column_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_few_rows', 'cuda_shifted', 'cuda_periodic', 'cuda_few_rows', 'cuda_cluster']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    fallback = ("cuda_shifted", "cuda_split", "triton_split")
    blocks_of_row = row_bytes(problem) // (16 * 256)
    wide = whole_vectors(problem, "n") and blocks_of_row >= WIDE_BLOCKS * card.multiprocessors
    if m <= FEW_ROWS or (m <= ROWS_OF_WIDE and wide):
        return ("cuda_few_rows", *fallback)
    if n <= FEW_COLUMNS:
        few = m * row_bytes(problem) <= CLUSTER_BYTES
        return ("cuda_cluster", "cuda_periodic", *fallback) if few else ("cuda_periodic", *fallback)
    return fallback
