"""The variant that a user of `column_sum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes

FEW_ROWS = 16
"""Rows of which a thread adds up whole columns. H200: 12 rows of 21,282 bf16 take 1.59 us so and 2.98 in strips, 32 of 16,384
fp16 3.9 and 1.8."""
WIDE_ROW_BYTES = 2 * 256 * 16
"""Of a row for each multiprocessor, two blocks of 256 threads with a vector each, which keep memory busy. H200: 18 rows of
1,219,979 fp16 take 13.8 us in one pass and 35.7 in strips, 256 of 524,288 61.3 and 62.0."""
CLUSTER_COLUMNS, CLUSTER_BYTES = 256, 512 * 1024
"""Of a matrix that one cluster adds up (`periodic_cluster`), so that no second launch adds up its parts. H200: 797 rows of 67
fp16 take 2.2 us so and 4.8 in strips, 152 of 56 bf16 1.8 and 1.5."""
NARROW_ROW_BYTES = 64
"""Two sectors, of which a narrower strip reads parts. H200: 55,722,227 rows of 3 bf16 take 79 us as one vector and 195 in strips,
6,616,110 of 29 92 and 114; 3,296 of 56 fp32 4.6 and 2.8, 837,401 of 170 bf16 70 and 77."""
STRIP_ROWS, STRIP_BYTES = 512, 2**20
"""Of a matrix up to which strips have all rows. H200: 512 rows of 4096 fp32 take 3.7 us so and 5.7 in parts of the rows, 3,296 of
56 2.8 and 4.2, 32,768 of 128 bf16 12.7 and 7.2."""


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass for at most 16 rows, or rows of two blocks of 16-byte vectors a multiprocessor; else one cluster of blocks for
    up to 256 columns and 512 KiB; the matrix as one vector for rows of less than 64 bytes; strips of all rows for at most 512
    rows or 1 MiB; else parts of the rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((2, 1555024), (21, 4264757), (4864, 8), (432734152, 1), (92, 10484), (1765, 9361))
    >>> [columns(Problem(op="column_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_few_rows', 'cuda_few_rows', 'cuda_cluster', 'cuda_periodic', 'cuda_strips', \
'cuda_shifted']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    if m <= FEW_ROWS or of_row >= WIDE_ROW_BYTES * card.multiprocessors:
        return ("cuda_few_rows", "cuda_strips", "cuda_cluster", "cuda_split", "cuda_column_per_thread")
    if n <= CLUSTER_COLUMNS and m * of_row <= CLUSTER_BYTES:
        return ("cuda_cluster", "cuda_strips", "cuda_few_rows", "cuda_periodic", "cuda_shifted")
    if of_row < NARROW_ROW_BYTES:
        return ("cuda_periodic", "cuda_cluster", "cuda_shifted", "cuda_strips", "triton_split")
    if m <= STRIP_ROWS or m * of_row <= STRIP_BYTES:
        return ("cuda_strips", "cuda_shifted", "cuda_split", "cuda_periodic", "cuda_few_rows")
    return ("cuda_shifted", "cuda_strips", "cuda_split", "cuda_periodic", "cuda_cluster")
