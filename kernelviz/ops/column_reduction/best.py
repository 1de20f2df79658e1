"""The variant that a user of `column_sum` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors
from kernelviz.ops.column_reduction.strips import column_strips
from kernelviz.ops.column_reduction.vectors import ODD_ITEMSIZE, has_known_size

FEW_ROWS = 16
"""Rows of which a thread adds up whole columns. H200: 12 rows of 21,282 bf16 take 1.59 us so and 2.98 in strips, 32 of 16,384
fp16 3.9 and 1.8."""
WIDE_ROW_BYTES = 2 * 256 * 16
"""Of a row for each multiprocessor, two blocks of 256 threads with a vector each, which keep memory busy. H200: 18 rows of
1,219,979 fp16 take 13.8 us in one pass and 35.7 in strips, 256 of 524,288 61.3 and 62.0."""
UNALIGNED_ROWS, UNALIGNED_ROW_BYTES = 32, 256 * 16 // 2
"""Rows of 16-bit elements that do not begin with 16-byte vectors, and of one of them for each multiprocessor, half a block, from
which on groups of warps share them in one pass. H200: 28 rows of 240,193 fp16 take 5.0 us by four groups, 6.5 by one and 9.3 in
strips."""
CLUSTER_COLUMNS, CLUSTER_BYTES = 32, 512 * 1024
"""Of a matrix that one cluster adds up (`periodic_cluster`), so that no second launch adds up its parts. H200: 1392 rows of 16
bf16 take 2.05 us so and 2.41 in strips, 152 of 56 1.8 and 1.5, 72 of 124 fp16 1.69 and 1.42; 797 of 67 2.2 so, and in strips of
narrow vectors an estimate."""
NARROW_ROW_BYTES = 64
"""Two sectors, of which a narrower strip reads parts. H200: 55,722,227 rows of 3 bf16 take 79 us as one vector and 195 in strips,
6,616,110 of 29 92 and 114; 3,296 of 56 fp32 4.6 and 2.8, 837,401 of 170 bf16 70 and 77."""
VECTOR_COLUMNS, VECTOR_BYTES = 320, 32 * 2**20
"""Of a matrix that is added up as one vector, the latter an estimate. H200: 607,869 rows of 320 bf16 take 92 us so and 98 in
parts of the rows, 1,078,133 of 142 75 and 84, 245,448 of 96 fp32 26.3 and 26.4."""
STRIP_ROWS, STRIP_BYTES = 512, 2**20
"""Of a matrix up to which strips have all rows, whatever its width. H200: 512 rows of 4096 fp32 take 3.7 us so and 5.7 in parts
of the rows, 3,296 of 56 2.8 and 4.2, 32,768 of 128 bf16 12.7 and 7.2."""
FULL_SHARE, FULL_STRIP_ROWS, FULL_STRIP_BYTES = 0.9, 4096, 64 * 2**20
"""Part of the multiprocessors for which the strips have blocks, and rows and bytes of a matrix, up to which strips are faster
then. H200: 4096 rows of 512 bf16 take 3.4 us in strips and 5.3 in parts of the rows, of 2048 8.2 and 8.8, of 8192 18.9 and 19.7,
of 65,536 fp16 121.0 and 121.2: 128 blocks each."""


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass for at most 16 rows, 32 small or unaligned ones, or rows of two blocks of vectors a multiprocessor; one cluster
    for up to 32 columns and 512 KiB; one vector for rows below 64 bytes, or 320 columns from 32 MiB; strips for up to 512 rows
    or 1 MiB, and for up to 4096 rows and 64 MiB if nearly all multiprocessors have a block; else parts of the rows.

    A strip is as many adjacent columns as keep the multiprocessors busy, of all rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((2, 1555024), (21, 4264757), (28, 240_193), (4864, 8), (432734152, 1), (607_869, 320), (92, 10484), (4096, 512))
    >>> sizes = *sizes, (4096, 768)
    >>> sizes = *sizes, (1765, 9361)
    >>> [columns(Problem(op="column_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_few_rows', 'cuda_few_rows', 'cuda_few_rows', 'cuda_cluster', 'cuda_periodic', 'cuda_periodic', 'cuda_strips', \
'cuda_strips', 'cuda_shifted', 'cuda_shifted']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    if m <= FEW_ROWS or _few_unaligned(problem, card) or of_row >= WIDE_ROW_BYTES * card.multiprocessors:
        return ("cuda_few_rows", "cuda_strips", "cuda_cluster", "cuda_split", "cuda_column_per_thread")
    if n <= CLUSTER_COLUMNS and m * of_row <= CLUSTER_BYTES:
        return ("cuda_cluster", "cuda_strips", "cuda_few_rows", "cuda_periodic", "cuda_shifted")
    if of_row < NARROW_ROW_BYTES or (n <= VECTOR_COLUMNS and m * of_row >= VECTOR_BYTES):
        return ("cuda_periodic", "cuda_cluster", "cuda_shifted", "cuda_strips", "triton_split")
    if m <= STRIP_ROWS or m * of_row <= STRIP_BYTES or _full_of_strips(problem, card):
        return ("cuda_strips", "cuda_cluster", "cuda_shifted", "cuda_split", "cuda_few_rows")
    return ("cuda_shifted", "cuda_strips", "cuda_split", "cuda_periodic", "cuda_cluster")


def _full_of_strips(problem: Problem, card: Card) -> bool:
    """Whether the strips of a matrix of whole vectors are blocks for nearly all multiprocessors, and it is not so large that they
    are no faster."""
    m, n, itemsize_bytes = problem.sizes["m"], problem.sizes["n"], dtype_named(problem.dtype).itemsize_bytes
    if m > FULL_STRIP_ROWS or m * row_bytes(problem) > FULL_STRIP_BYTES or not whole_vectors(problem, "n"):
        return False
    tile = column_strips(m, n, itemsize_bytes, 0, card.multiprocessors)
    return tile is not None and tile.strips * tile.cluster >= FULL_SHARE * card.multiprocessors


def _few_unaligned(problem: Problem, card: Card) -> bool:
    """Whether `cuda_few_rows` has a kernel for the size, or groups of warps that share rows from anywhere in a vector."""
    m, n, itemsize_bytes = problem.sizes["m"], problem.sizes["n"], dtype_named(problem.dtype).itemsize_bytes
    if has_known_size(m, n, itemsize_bytes, 0):
        return True
    is_unaligned = itemsize_bytes <= ODD_ITEMSIZE and not whole_vectors(problem, "n")
    return is_unaligned and m <= UNALIGNED_ROWS and row_bytes(problem) >= UNALIGNED_ROW_BYTES * card.multiprocessors
