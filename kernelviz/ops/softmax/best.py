"""The variant that a user of `softmax` gets."""

from __future__ import annotations

from math import gcd

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    CLUSTER_ROW_BYTES,
    ONE_PROGRAM,
    TMA_BYTES,
    Card,
    few_slabs,
    row_bytes,
    slabs_of_rows,
    whole_vectors,
)

CLUSTER = 8
"""Blocks of a cluster."""
VECTOR_ROW_BYTES = 128
"""Of a row of whole 16-byte vectors that threads of `cuda_slab_stages` have in registers, or several in a program of Triton.
H200: 524,288 rows of 32 bf16 take 15.5 us by the first, and 25.7 by warps; of fp32 8,388,608 of 32 take 538 by the first and 519
by the second, 10,940,413 of 2 41.3 and 38.9; 62,669,654 of one fp16 62.2 and 72.7, because such a program has 2 KiB."""
SLAB_ROW_BYTES = 2048
"""Of other rows. H200: a million rows of 42 bytes take 21 us through a ring of slabs, 26 as slabs and 109 by warps; 53,316 of 670
bytes 19.7 and 25.3 by warps; from 1 KiB on inferred from `cross_entropy_with_grad`. 200,000 rows of 400 bytes, which are whole
vectors, take 67 us as slabs and 38 by warps."""
BACKWARD_SLAB_ROW_BYTES = 1024
"""H200: 100,000 of 666 bytes take 53 us through a ring, and 63 by programs of Triton; 3,303 of 1,794 bytes 7.3 and 6.2."""
WIDE_BACKWARD_SLAB_ROW_BYTES = 512
"""The same of fp32, an estimate. H200: 262,776 rows of 840 bytes take 161 us as slabs and by a program each, and 151 in
torch_compile, whose programs have four rows."""
LONGEST_PROGRAM = 8192
"""Elements of an uneven row backward. H200: 28 rows of 5,801 fp32 take 2.52 us by programs of Triton, and 2.85 in CUDA C++; 1,373
of 6,626 bf16 17.9 and 19.5; 1,015 of 11,015 28.5 and 19.2."""
SPLIT_ROW_BYTES = 2**18
"""Backward, of a row. H200: one row of 284,624 bytes takes 5.7 us by blocks all over the GPU, 7.5 in a cluster; 32 of 262,144
bytes 13.5 and 10.7; 254 of 597,394 bytes 195 and 130."""


def softmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters with fixed columns forward, clusters backward, and a block a row where there are no clusters; several
    blocks a row for a few rows that no cluster keeps, and for those of more than 1 MiB, or of 256 KiB backward, whose clusters
    would occupy no more multiprocessors than there are, or half of them backward; programs of Triton for the size for rows of at
    most 1024 elements that are no more than the multiprocessors, or no whole 16-byte vectors and at most four slabs of 4 KiB for
    each, forward for fp32 rows of two elements or more that divide a vector or are whole ones of at most 128 bytes, and backward
    for uneven rows of at most 8192 elements; as pieces of shared memory or in registers other rows that divide a vector, uneven
    ones of at most 2 KiB, or 1 KiB (fp32 512 bytes) backward, and forward many of at most 128 bytes.

    H200: programs for the size take 1.24 us for 2 rows of 276 bf16, those for any size 1.46; backward, 1.61 for 1,985 rows of 17
    fp32, and 2.58 as slabs.

    In CUDA C++ a row that begins within a vector takes one vector more than it fills, which is much of a short row. A thread of
    `cuda_slab_stages` reads three adjacent vectors of rows of 6, 12 or 24 bytes, each of which is part of a sector of L2: H200,
    68 million rows of 3 bf16 take 236 us so, and 205 through shared memory.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 7), (200, 7), (100, 7), (4, 2**22), (7000, 4), (2**19, 32), (2**26, 3))
    >>> problems = [Problem(op="softmax", sizes={"m": m, "n": n}, dtype="bf16") for m, n in shapes]
    >>> problems.append(Problem(op="softmax", sizes={"m": 2**23, "n": 32}, dtype="fp32"))
    >>> [softmax(problem, H200)[0] for problem in problems]
    ['cuda_columns', 'cuda_slab_stages', 'triton_known_size', 'triton_known_size', 'cuda_split', 'cuda_slab_stages', \
'cuda_slab_stages', 'cuda_slab', 'triton_known_size']
    >>> sizes = [{"m": m, "n": n} for m, n in (*shapes, (2**17, 333), (2**17, 777), (8, 2**18), (32, 2**18))]
    >>> [softmax(Problem(op="softmax", sizes=one, dtype="bf16", direction="backward"), H200)[0] for one in sizes]
    ['cuda_cluster', 'cuda_slab_stages', 'triton_known_size', 'triton_known_size', 'cuda_split', 'cuda_slab_stages', \
'cuda_cluster', 'cuda_slab', 'cuda_slab_stages', 'triton_known_size', 'cuda_split', 'cuda_cluster']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    backward, uneven = problem.direction == "backward", not whole_vectors(problem, "n")
    divides, small = TMA_BYTES % of_row == 0, few_slabs(problem, card)
    if n <= ONE_PROGRAM and (m <= card.multiprocessors or (uneven and not divides and small)):
        return ("triton_known_size", "triton_block_per_row", "cuda_row")
    if not backward and problem.dtype == "fp32" and n > 1 and (divides or (not uneven and of_row <= VECTOR_ROW_BYTES)):
        return ("triton_known_size", "cuda_slab_stages", "cuda_row")
    if divides:
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if uneven and of_row <= _longest_slab_row_bytes(problem):
        if of_row == 3 * gcd(TMA_BYTES, of_row) and m * of_row > card.l2_bytes:
            return ("cuda_slab", "cuda_slab_stages", "cuda_row")
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if not backward and slabs_of_rows(problem, card, longest_bytes=VECTOR_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if _shared_by_blocks(problem, card):
        return ("cuda_split", "cuda_row")
    if not backward:
        return ("cuda_columns", "cuda_row")
    if uneven and n <= LONGEST_PROGRAM:
        return ("triton_known_size", "triton_block_per_row", "cuda_row")
    return ("cuda_cluster", "cuda_row")


def _longest_slab_row_bytes(problem: Problem) -> int:
    if problem.direction == "forward":
        return SLAB_ROW_BYTES
    return WIDE_BACKWARD_SLAB_ROW_BYTES if problem.dtype == "fp32" else BACKWARD_SLAB_ROW_BYTES


def _shared_by_blocks(problem: Problem, card: Card) -> bool:
    """Whether blocks all over the GPU share each row: few rows that no cluster keeps on chip, or very few."""
    m, of_row, backward = problem.sizes["m"], row_bytes(problem), problem.direction == "backward"
    # A cluster keeps rows of one tensor of up to 2.25 MiB, and of two tensors of up to 1 MiB (`kernels/row_tiles.py`).
    longest_bytes = CLUSTER_ROW_BYTES if backward else 9 * CLUSTER_ROW_BYTES // 4
    if of_row > longest_bytes and m < 4 * card.multiprocessors:
        return True
    if backward:
        return of_row >= SPLIT_ROW_BYTES and 2 * CLUSTER * m <= card.multiprocessors
    return of_row > CLUSTER_ROW_BYTES and CLUSTER * m <= card.multiprocessors
