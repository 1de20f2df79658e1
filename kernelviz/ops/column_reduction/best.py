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

KNOWN_ROWS, KNOWN_ELEMENTS = 16, 1024
"""Of a matrix for whose size `cuda_few_rows` has a kernel of its own, without a barrier. An estimate: H200, 15 rows of 37 fp16
take 1.29 us by one block that adds up sums of its threads, and 1.19 by inductor's kernel."""
STRIP_ROWS, STRIP_BYTES, STRIP_VECTOR_BYTES = 512, 2**24, 8
"""Most rows and bytes of a matrix that is added up in one pass of strips, and the least vector of its rows: estimates. H200, 92
rows of 10,484 fp32 take 3.22 us as strips of a warp's width, of which there are fewer than SMs, and 2.68 by inductor."""


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass for up to 8 rows, 64 wide aligned ones, and up to 16 rows of 1024 elements in all; up to 256 columns, the matrix
    as one vector, by one cluster if it has at most 256 KiB; strips of all rows for up to 512 of them and 16 MiB, if rows are
    whole vectors of 8 bytes; else parts of the rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((2, 1555024), (1765, 9361), (432734152, 1), (64, 2**20), (4864, 8), (15, 37), (92, 10484))
    >>> [columns(Problem(op="column_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_few_rows', 'cuda_shifted', 'cuda_periodic', 'cuda_few_rows', 'cuda_cluster', 'cuda_few_rows', 'cuda_strips']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    fallback = ("cuda_shifted", "cuda_split", "triton_split")
    blocks_of_row = row_bytes(problem) // (16 * 256)
    wide = whole_vectors(problem, "n") and blocks_of_row >= WIDE_BLOCKS * card.multiprocessors
    known = m <= KNOWN_ROWS and m * n <= KNOWN_ELEMENTS
    if m <= FEW_ROWS or (m <= ROWS_OF_WIDE and wide) or known:
        return ("cuda_few_rows", *fallback)
    if n <= FEW_COLUMNS:
        few = m * row_bytes(problem) <= CLUSTER_BYTES
        return ("cuda_cluster", "cuda_periodic", *fallback) if few else ("cuda_periodic", *fallback)
    if m <= STRIP_ROWS and m * row_bytes(problem) <= STRIP_BYTES and row_bytes(problem) % STRIP_VECTOR_BYTES == 0:
        return ("cuda_strips", *fallback)
    return fallback
