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
SHORT_ROW_BYTES = 128
"""Of a row of whole 16-byte vectors that threads of `cuda_slab_stages` have in registers, and of a power of two elements, of
which programs of Triton for the size leave no thread idle. H200: 524,288 rows of 32 bf16 take 15.5 us by the first, 25.7 by
warps; in us by the second and by the best of CUDA C++, 18,511,256 of 8 bf16 136 and 147, 8,388,608 of 32 fp32 519 and 538;
backward, where rows of more than 32 bytes are inferred, 32,768 of 16 bf16 1.75 and 1.81, 393 of one fp16 1.08 and 1.31,
33,554,432 of 4 bf16 183 and 181; but forward 62,669,654 of one fp16 72.7 and 62.2, because such a program has 2 KiB."""
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
"""Elements of an uneven row backward, and of the longest that programs keep. H200: 28 rows of 5,801 fp32 take 2.52 us by programs
of Triton, and 2.85 in CUDA C++; 1,373 of 6,626 bf16 17.9 and 19.5; 1,015 of 11,015 28.5 and 19.2."""
SPLIT_ROW_BYTES = 2**18
"""Backward, of a row. H200: one row of 284,624 bytes takes 5.7 us by blocks all over the GPU, 7.5 in a cluster; 7 of 349,860
bytes 8.8 and 8.0; 254 of 597,394 bytes 195 and 130. Forward, of rows of 1 to 2.25 MiB, a quarter of the multiprocessors is
inferred from `cross_entropy_with_grad`, where 8 of 2,086,272 bytes take 15.2 and 13.1."""


def softmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """Clusters of blocks, forward persistent ones with fixed columns for whole 16-byte vectors, and a block a row where there are
    no clusters; several blocks a row for fewer than four rows a multiprocessor of more than 2.25 MiB, or 1 MiB backward, and from
    1 MiB on, or 256 KiB backward, if clusters would occupy at most a quarter of the multiprocessors; programs of Triton for the
    size for rows of at most 1024 elements that are no more than the multiprocessors, or together at most four slabs of 4 KiB for
    each and no whole vectors or a power of two, and for more of at most 128 bytes that are a power of two, forward from two on;
    as pieces of shared memory other uneven rows of at most 2 KiB, or 1 KiB (fp32 512 bytes) backward, and forward many of at most
    128 bytes; and programs for the size, too, for longer uneven rows backward of at most 8192 elements.

    H200: programs for the size take 1.24 us for 2 rows of 276 bf16, those for any size 1.46, and 1.72 for 2,048 of 128, clusters
    1.86; backward, 1.61 for 1,985 rows of 17 fp32, and 2.58 as slabs. Persistent clusters take 43.6 us for 663 rows of 50,044
    fp16, which begin within vectors, and others 35.2; for 1024 of 131,072 bf16 134 and 142.

    In CUDA C++ a row that begins within a vector takes one vector more than it fills, which is much of a short row. A thread of
    `cuda_slab_stages` reads three adjacent vectors of rows of 6, 12 or 24 bytes, each of which is part of a sector of L2: H200,
    68 million rows of 3 bf16 take 236 us so, and 205 through shared memory.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 7), (200, 7), (100, 7), (4, 2**22), (7000, 4), (2**19, 32), (2**26, 3))
    >>> problems = [Problem(op="softmax", sizes={"m": m, "n": n}, dtype="bf16") for m, n in shapes]
    >>> problems.append(Problem(op="softmax", sizes={"m": 2**23, "n": 32}, dtype="fp32"))
    >>> [softmax(problem, H200)[0] for problem in problems]
    ['cuda_columns', 'cuda_slab_stages', 'triton_known_size', 'triton_known_size', 'cuda_split', 'triton_known_size', \
'triton_known_size', 'cuda_slab', 'triton_known_size']
    >>> sizes = [{"m": m, "n": n} for m, n in (*shapes, (2**17, 333), (2**17, 777), (4, 2**18), (32, 2**18))]
    >>> [softmax(Problem(op="softmax", sizes=one, dtype="bf16", direction="backward"), H200)[0] for one in sizes]
    ['cuda_cluster', 'cuda_slab_stages', 'triton_known_size', 'triton_known_size', 'cuda_split', 'triton_known_size', \
'triton_known_size', 'cuda_slab', 'cuda_slab_stages', 'triton_known_size', 'cuda_split', 'cuda_cluster']
    """
    m, n, of_row = problem.sizes["m"], problem.sizes["n"], row_bytes(problem)
    backward, uneven = problem.direction == "backward", not whole_vectors(problem, "n")
    power = n.bit_count() == 1
    few = m <= card.multiprocessors
    if n <= ONE_PROGRAM and (few or ((uneven or power) and few_slabs(problem, card))):
        return ("triton_known_size", "triton_block_per_row" if few else "cuda_slab_stages", "cuda_row")
    if power and of_row <= SHORT_ROW_BYTES and (backward or n > 1):
        return (
            "triton_known_size",
            "cuda_cluster" if backward and of_row > TMA_BYTES else "cuda_slab_stages",
            "cuda_row",
        )
    if uneven and of_row <= _longest_slab_row_bytes(problem):
        if of_row == 3 * gcd(TMA_BYTES, of_row) and m * of_row > card.l2_bytes:
            return ("cuda_slab", "cuda_slab_stages", "cuda_row")
        return ("cuda_slab_stages", "cuda_slab", "triton_known_size", "cuda_row")
    if not backward and slabs_of_rows(problem, card, longest_bytes=SHORT_ROW_BYTES):
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if _shared_by_blocks(problem, card):
        return ("cuda_split", "cuda_row")
    if backward and uneven and n <= LONGEST_PROGRAM:
        return ("triton_known_size", "triton_block_per_row", "cuda_row")
    longer = ("cuda_row",) if n > LONGEST_PROGRAM else ("triton_known_size", "cuda_row")
    return ("cuda_cluster" if backward or uneven else "cuda_columns", *longer)


def _longest_slab_row_bytes(problem: Problem) -> int:
    if problem.direction == "forward":
        return SLAB_ROW_BYTES
    return WIDE_BACKWARD_SLAB_ROW_BYTES if problem.dtype == "fp32" else BACKWARD_SLAB_ROW_BYTES


def _shared_by_blocks(problem: Problem, card: Card) -> bool:
    """Whether blocks all over the GPU share each row: few rows that no cluster keeps on chip, or very few long ones."""
    m, of_row, backward = problem.sizes["m"], row_bytes(problem), problem.direction == "backward"
    # A cluster keeps rows of one tensor of up to 2.25 MiB, and of two tensors of up to 1 MiB (`kernels/row_tiles.py`).
    longest_bytes = CLUSTER_ROW_BYTES if backward else 9 * CLUSTER_ROW_BYTES // 4
    if of_row > longest_bytes and m < 4 * card.multiprocessors:
        return True
    return of_row >= (SPLIT_ROW_BYTES if backward else CLUSTER_ROW_BYTES) and 4 * CLUSTER * m <= card.multiprocessors
