"""The variant that a user of a cross entropy gets."""

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
    triton_vectorises,
    whole_vectors,
)

FEW = 2
"""Rows a multiprocessor up to which a program of Triton each takes latency alone. H200: 149 rows of 733 bf16 take 2.1 us so, in
CUDA C++ 2.6; with gradient, one of 147 1.34 by the kernel for the size and 1.72 by that for any; backward, 11 of 61 1.20 and
1.11, and 263 of 18 fp16 1.38 in Triton, 1.71 in CUDA C++."""
SHORT_ROW = 2**14
"""Elements of such a row. H200: 4 rows of 13,323 fp32 take 3.1 us in Triton, 4.4 in clusters of blocks; 8192 rows of 32000 203
and 119."""
WARP_ROW_BYTES = 1024
"""Of a row of whole vectors with gradient, of which a warp has two vectors a thread. H200: 128 rows of 256 bytes take 1.6 us in
Triton and 2.3 in CUDA C++; 40 of 1,040 bytes 2.15 and 1.87."""
TINY_ROW = 2
"""Elements of a row of which `cuda_known_length` has a thread, however few rows there are, but for those backward. H200: 17 rows
of 2 fp32 take 1.05 us, 1.12 in Triton; 4 of 12 1.16 and 1.02; with gradient, 2 of 4 1.39 and 1.25; backward, one of 2 bf16 1.06
and 0.97."""
PROGRAMS = 16
"""Rows a multiprocessor beyond which rows are many: an estimate. H200: 4,096 of 32 fp32 with gradient take 2.36 us as slabs, 3.34
by warps."""
LONGEST_PROGRAM = 8192
"""Elements of many uneven rows backward that programs of Triton have. H200: 33,504 of 5,692 fp16 take 183 us so, 204 in CUDA C++;
16 of 4,455 bf16 2.10 and 1.89."""
BACKWARD_ROW = 256
"""Elements of a row backward of which Triton loads no vectors: an estimate. H200: 152 rows of 680 fp32 take 2.13 us in Triton,
1.77 in CUDA C++; 64 of 1024 fp16 1.41 and 1.59."""
THREAD_ROW_BYTES, THREAD_ACCESSES = 64, 4
"""A row of which `cuda_known_length` has a thread, and of those with a gradient the accesses up to which slabs gain nothing."""
CACHED_ACCESSES = 7
"""The same where L2 holds the rows, so that it joins what the accesses write. H200, with gradient: 314,985 rows of 10 fp16, which
are five accesses, take 5.4 us by a thread each, 6.8 through a ring of slabs; 7,485 of 5 fp32 1.54, and 1.69 by programs for the
size, but 2,752 of 18 bf16, nine accesses, 1.96 and 1.75; backward, 1,396,833 of 15 fp16 189 and 26 through a ring."""
SLAB_ROW_BYTES = 2048
"""Up to which many rows that begin within 16-byte vectors are processed in shared memory. H200: 36,058 rows of 1,654 bytes take
23.1 us so, and 26.7 with a block each; with gradient, 125,119 of 1,518 bytes 108 and 122."""
WIDE_SLAB_ROW_BYTES = 256
"""The same of fp32, of which fewer elements begin or end a row, but for those backward: an estimate. H200: 82,028 rows of 440
bytes take 13.1 us so, and 12.2 by warps; with gradient, 60,937 of 1,388 bytes 46.3 and 43.8."""
VECTOR_ROW_BYTES = 128
"""The same of many rows of whole vectors with gradient. H200: 4,977,690 rows of 80 bytes take 215 us as slabs, 381 by warps."""
SPLIT_ROW_BYTES = 2**19
"""From which on several blocks share a row for the losses alone, if a cluster of eight for each would leave multiprocessors
without one. H200: 2 rows of 1,984,548 bytes take 6.8 us so, and 18.1 in clusters; 32 of 1 MiB 14.3 and 12.6."""
LONG_UNEVEN_ROW = 8192
"""Elements of a row that begins within a vector, with gradient."""
CLUSTER = 8
"""Blocks of a cluster."""
CLUSTER_ROW = 2**19
"""Elements of a row with gradient beyond which a cluster takes longer for it than blocks all over the GPU, if clusters leave
multiprocessors without one. H200: 3 rows of 622,363 fp16 take 9.3 us by blocks and 20.2 in clusters, 8 of 521,568 fp32 15.2 and
13.1."""
LONGEST_ON_CHIP_BYTES = 9 * 2**18
"""Of a row that a cluster of eight blocks has in registers and shared memory (`kernels/row_tiles.py`). H200, with gradient: 128
rows of 2 MiB take 155 us in clusters, and 197 if several blocks share a row."""


def cross_entropy(problem: Problem, card: Card) -> tuple[str, ...]:
    """A block of CUDA C++ a row, or several short rows a block; of no more than two rows a multiprocessor programs of Triton, for
    the size forward, of at most 16384 elements (of more than one row a multiprocessor only rows of more than 64 bytes), and for
    any size backward, of at most 256, or 1024 whose number is a multiple of 16; programs for the size forward for more rows of
    more than two elements that divide a 16-byte vector; a thread a row for rows of at most two elements forward and for more of
    at most 64 bytes, which backward are no more than four accesses (seven if L2 holds the rows, one of many whole vectors);
    programs for the size for others of at most 1024 elements, or 256 backward, that are no whole vectors and together at most
    four slabs of 4 KiB a multiprocessor, and backward for more than sixteen uneven rows a multiprocessor of at most 8192
    elements; before these as pieces of shared memory so many uneven rows of at most 2 KiB (forward fp32 256 bytes); forward, for
    longer rows that are no more than the multiprocessors, a cluster of blocks a row, or blocks all over the GPU from 512 KiB on
    if clusters would leave multiprocessors without one, and beyond 1 MiB; and clusters for fewer than four rows a multiprocessor
    of more than 1 MiB.

    H200: 23 rows of 33,855,006 bf16 take 592 us in clusters and 3,954 with a block each, 2048 of 128,256 take 118 in both;
    284,717 of 4 bf16 take 2.9 us by programs for the size, which have no idle thread then, and 3.5 by a thread each;
    backward, 4 rows of 4096 bf16 take 1.7 us in CUDA C++ and 2.2 in Triton, one of 83,241,104 fp32 158 and 749. Backward, a
    thread writes 16 bytes of each of 32 rows at a time: 982,968 rows of 64 bytes take 50 us so, and 32 by warps.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (4096, 4096), (16, 128256), (500, 2**22), (2, 2**23), (10**6, 3), (10**6, 91), (10**6, 96))
    >>> shapes = (*shapes, (10**6, 4))
    >>> [cross_entropy(Problem(op="cross_entropy", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['triton_known_size', 'cuda_row', 'cuda_cluster', 'cuda_cluster', 'cuda_split', 'cuda_known_length', 'cuda_slab_stages', \
'cuda_row', 'triton_known_size']
    >>> shapes = ((4096, 32000), (4096, 50257), (4, 4096), (35, 40), (999, 16), (10**5, 16), (10**6, 91), (10**6, 96), (9, 2))
    >>> shapes = (*shapes, (10**6, 1), (5000, 62), (10**5, 5001))
    >>> sizes = [{"m": m, "v": v} for m, v in shapes]
    >>> backward = [Problem(op="cross_entropy", sizes=one, dtype="bf16", direction="backward") for one in sizes]
    >>> [cross_entropy(problem, H200)[0] for problem in backward]
    ['cuda_row', 'cuda_row', 'cuda_row', 'triton_online', 'cuda_known_length', 'cuda_row', 'cuda_slab_stages', 'cuda_row', \
'triton_online', 'cuda_known_length', 'triton_known_size', 'triton_known_size']
    """
    m, v, of_row = problem.sizes["m"], problem.sizes["v"], row_bytes(problem, "v")
    if problem.direction == "backward":
        longest = ONE_PROGRAM if triton_vectorises(v) else BACKWARD_ROW
        if v <= longest and m <= FEW * card.multiprocessors:
            return ("triton_online", "triton_known_size", "cuda_row")
        many = m > PROGRAMS * card.multiprocessors
        if many and whole_vectors(problem, "v") and of_row > TMA_BYTES:
            return ("cuda_row", "triton_online")
        if short := _short(problem, card):
            return (*short, "cuda_row")
        if many and not whole_vectors(problem, "v") and v <= LONGEST_PROGRAM:
            return ("triton_known_size", "cuda_row")
        return ("cuda_row", "triton_online")
    if (
        TINY_ROW < v <= SHORT_ROW
        and m <= FEW * card.multiprocessors
        and not (m > card.multiprocessors and _by_thread(problem))
    ):
        return ("triton_known_size", "triton_block_per_row", "cuda_row")
    if v > TINY_ROW and TMA_BYTES % of_row == 0:
        return ("triton_known_size", "cuda_known_length", "cuda_row")
    if short := _short(problem, card):
        return (*short, "cuda_row")
    if m <= card.multiprocessors and (
        of_row > CLUSTER_ROW_BYTES or (of_row >= SPLIT_ROW_BYTES and CLUSTER * m <= card.multiprocessors)
    ):
        return ("cuda_split", "cuda_cluster", "cuda_row")
    if m <= card.multiprocessors or (m < 4 * card.multiprocessors and of_row > CLUSTER_ROW_BYTES):
        return ("cuda_cluster", "cuda_row")
    return ("cuda_row", "triton_online")


def with_grad(problem: Problem, card: Card) -> tuple[str, ...]:
    """Clusters of blocks, persistent ones for rows of whole 16-byte vectors, or a block a row; programs of Triton for the size
    for no more than two rows a multiprocessor, of at most 1 KiB, or of at most 8192 elements that are no whole vectors; a thread
    a row for rows of at most two elements, or of at most 64 bytes that are no more than four accesses, or seven if L2 holds the
    rows; for more rows of at most 1024 elements that are no whole vectors and together at most four slabs of 4 KiB a
    multiprocessor programs for the size, too; as pieces of shared memory more rows than sixteen a multiprocessor, of at most
    2 KiB (fp32 256 bytes) that are no whole vectors, or of at most 128 bytes that are; several blocks a row for rows beyond
    2.25 MiB that are at most two a multiprocessor, and beyond 524,288 elements if clusters would leave multiprocessors without
    one.

    H200: 4,517 rows of 26 fp16 take 1.87 us by programs for the size, and 2.55 through a ring of slabs; 1,078,606 of 3 bf16 13.8,
    and 7.9 by a thread each. Few short rows take latency alone, and CUDA C++ waits for the elements before and after the vectors
    of a row. Persistent clusters take 9.8 us for 40 rows of 66,760 fp32, and others 12.8; 22.6 and 18 for 352 of 33,978 bf16,
    which begin within vectors. 10 rows of 1,181,880 fp32, with a block each, take 207 us, and 70 in torch_compile.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((1024, 128256), (8, 500), (5, 4001), (10, 2**21), (29, 2), (76_709, 15), (29, 15), (2**22, 16), (99, 2**20))
    >>> [with_grad(Problem(op="cross_entropy_with_grad", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['cuda_columns', 'triton_known_size', 'triton_known_size', 'cuda_split', 'cuda_known_length', 'cuda_slab_stages', \
'triton_known_size', 'cuda_slab_stages', 'cuda_columns']
    """
    m, v, of_row = problem.sizes["m"], problem.sizes["v"], row_bytes(problem, "v")
    whole = whole_vectors(problem, "v")
    few = m <= FEW * card.multiprocessors
    if few and v > TINY_ROW and (of_row <= WARP_ROW_BYTES or (not whole and v <= LONG_UNEVEN_ROW)):
        return ("triton_known_size", "triton_block_per_row", "cuda_row")
    if whole and TMA_BYTES < of_row <= VECTOR_ROW_BYTES and m > PROGRAMS * card.multiprocessors:
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if short := _short(problem, card):
        return (*short, "cuda_row")
    fewer = CLUSTER * m <= card.multiprocessors
    if (few and of_row > LONGEST_ON_CHIP_BYTES) or (fewer and v > CLUSTER_ROW):
        return ("cuda_split", "cuda_row")
    return ("cuda_columns" if whole else "cuda_cluster", "cuda_row")


def _by_thread(problem: Problem) -> bool:
    return row_bytes(problem, "v") <= THREAD_ROW_BYTES


def _short(problem: Problem, card: Card) -> tuple[str, ...]:
    """The variants for very short rows and for many short ones, or none."""
    m, of_row = problem.sizes["m"], row_bytes(problem, "v")
    accesses, uneven = of_row // gcd(TMA_BYTES, of_row), not whole_vectors(problem, "v")
    has_gradient = problem.direction == "backward" or problem.op == "cross_entropy_with_grad"
    most = CACHED_ACCESSES if m * of_row <= card.l2_bytes else THREAD_ACCESSES
    if _by_thread(problem) and (not has_gradient or accesses <= most):
        return ("cuda_known_length", "triton_known_size", "cuda_slab")
    longest = BACKWARD_ROW if problem.direction == "backward" else ONE_PROGRAM
    if uneven and problem.sizes["v"] <= longest and few_slabs(problem, card, columns="v"):
        return ("triton_known_size", "cuda_slab_stages")
    wide = problem.dtype == "fp32" and problem.direction == "forward"
    longest_bytes = WIDE_SLAB_ROW_BYTES if wide else SLAB_ROW_BYTES
    if uneven and of_row <= longest_bytes and m > PROGRAMS * card.multiprocessors:
        return ("cuda_slab_stages", "cuda_slab")
    return ()
