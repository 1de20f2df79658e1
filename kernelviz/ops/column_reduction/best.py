"""The variant that a user of `column_sum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, whole_vectors

FEW_ROWS = 8
"""Rows that one thread has in flight at once."""
FEW_COLUMNS = 256
"""With more columns, the last block has too much to add up: 132 blocks have 135 KB of sums for 256 columns, which take 2 µs."""
PERIODIC_COLUMNS = 64
"""With more columns, there is one periodic block for each multiprocessor, for the same reason. H200, us with periodic blocks and
in strips: 32,768 rows of 128 bf16 8.56 and 7.21, 38,331 of 144 fp32 12.1 and 10.2."""
PERIODIC_BYTES = 2**25
"""Of rows that begin within vectors, from which these sums are a small part. H200: 184,880 rows of 163 fp16 take 21.0 us with
periodic blocks and 21.6 in strips, 837,401 of 170 bf16 69.8 and 76.2."""
CLUSTER_BYTES = 512 * 1024
"""Of a matrix that one cluster adds up (`periodic_cluster`)."""
ROWS_OF_WIDE = 64
"""With more rows, it costs time that one SM may have a block more than another: each block has all rows of its columns."""
WIDE_BLOCKS = 2
"""Blocks of 256 threads for each SM that a row must have, so that memory is busy without parts of the rows. H200: 21 rows of
4,264,757 fp16 take 44.7 us in one pass and 116 in parts, 17 of 877,862 fp32 16.5 and 35.5."""

KNOWN_ROWS, KNOWN_ELEMENTS, KNOWN_COLUMNS = 32, 2**14, 2**16
"""Of a matrix for whose size `cuda_few_rows` has a kernel of its own, without a barrier. Estimates: H200, 29 rows of 314 bf16
take 1.36 us by inductor's kernel for the size and 2.3 by parts of the rows, 18 of 67 fp32 1.21 and in a cluster 1.38."""
STRIP_ROWS, STRIP_BYTES, STRIP_VECTOR_BYTES = 512, 2**24, 8
"""Most rows and bytes of a matrix that is added up in one pass of strips, and the least vector of its rows: estimates. H200, 92
rows of 10,484 fp32 take 3.22 us as strips of a warp's width, of which there are fewer than SMs, and 2.68 by inductor."""
VECTOR_BYTES = 16
WIDE_STRIP_BYTES, SHORT_BYTES, SMALL_BYTES = 64, 2**20, 2**22
"""The width of a strip with whole sectors; and bytes of a matrix of such rows of few columns, up to which strips of all rows by
clusters, or by parts of the rows whatever they fill, take less than the sums of periodic blocks. H200, us in strips, in parts
and in periodic blocks: 7,889 rows of 30 fp32 (0.9 MB) 3.84, 4.65 and 5.20, 20,728 (2.5 MB) 7.71, 5.37 and 5.84; 152
of 56 bf16 1.51 in strips and 1.82 in one cluster; 32,768 of 128
bf16 (8 MB) 12.7, 7.21 and 8.56. The bytes are estimates."""


def strip_is_half_full(problem: Problem) -> bool:
    """Whether a row has several 16-byte vectors, and at least half of the columns of its strip: a power of 2 of vectors, of which
    one more than those of the row, where rows begin within vectors.

    H200, us in periodic blocks and in such strips: 546,356 rows of 52 fp16 (52 of 64 columns) 19.9 and 18.5, 1,193,745 of 20
    bf16 (20 of 32) 17.0 and 16.3, 3,869,888 of 48 bf16 (48 of 64) 91.0 and 92.0, 265,632 of them 12.9 and 10.7; 17,064 of 8 bf16,
    which are one vector, 5.05 and 5.61, 3,192,879 of 26 fp16 (26 of 64) 43.1 and 53.9,
    1,803,801 of 12 fp16 (12 of 32) 15.9 and 19.0.

    >>> [strip_is_half_full(Problem(op="column_sum", sizes={"m": 2**20, "n": n}, dtype="bf16")) for n in (8, 12, 20, 26, 52)]
    [False, False, True, False, True]
    """
    vectors = -(-row_bytes(problem) // VECTOR_BYTES) + (not whole_vectors(problem, "n"))
    return vectors > 1 and 2 * row_bytes(problem) >= VECTOR_BYTES << (vectors - 1).bit_length()


def columns(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass for up to 8 rows, 64 wide ones, and up to 32 rows of 2^14 elements in all or of up to 2^16 columns without 8-byte
    vectors; strips of all rows, if these are whole vectors of 8 bytes and have at least 64, for up to 1 MiB, or 16 MiB of at most
    512 rows; up to 256 columns one cluster for at most 512 KiB; the matrix as one vector for up to 64 columns that leave strips
    more than half empty, except for 4 MiB of rows of 64 bytes, and for 65 to 256 columns that are not whole 16-byte vectors and
    32 MiB; else parts of the rows.

    Wide rows have two blocks of 256 vectors for each multiprocessor.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((2, 1555024), (1765, 9361), (432734152, 1), (64, 2**20), (4864, 8), (15, 37), (92, 10484), (21, 4264757))
    >>> [columns(Problem(op="column_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_few_rows', 'cuda_shifted', 'cuda_periodic', 'cuda_few_rows', 'cuda_cluster', 'cuda_few_rows', 'cuda_strips', \
'cuda_few_rows']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    of_row = row_bytes(problem)
    fallback = ("cuda_shifted", "cuda_split", "triton_split")
    wide = of_row // (VECTOR_BYTES * 256) >= WIDE_BLOCKS * card.multiprocessors
    vectors = of_row % STRIP_VECTOR_BYTES == 0
    known = m <= KNOWN_ROWS and (m * n <= KNOWN_ELEMENTS or (n <= KNOWN_COLUMNS and not vectors))
    if m <= FEW_ROWS or (m <= ROWS_OF_WIDE and wide) or known:
        return ("cuda_few_rows", *fallback)
    whole_sectors = of_row >= WIDE_STRIP_BYTES
    strip_bytes = STRIP_BYTES if m <= STRIP_ROWS else SHORT_BYTES
    if vectors and whole_sectors and m * of_row <= strip_bytes:
        return ("cuda_strips", *fallback)
    if n <= FEW_COLUMNS and m * of_row <= CLUSTER_BYTES:
        return ("cuda_cluster", "cuda_periodic", *fallback)
    is_small = whole_sectors and m * of_row <= SMALL_BYTES
    many = m * of_row >= PERIODIC_BYTES and not whole_vectors(problem, "n")
    if (many and PERIODIC_COLUMNS < n <= FEW_COLUMNS) or (
        n <= PERIODIC_COLUMNS and not strip_is_half_full(problem) and not is_small
    ):
        return ("cuda_periodic", *fallback)
    return fallback
