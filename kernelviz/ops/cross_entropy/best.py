"""The variant that a user of a cross entropy gets."""

from __future__ import annotations

from math import gcd

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    CLUSTER_ROW_BYTES,
    ONE_PROGRAM,
    SHORT_ROW_BYTES,
    SLAB_BYTES,
    TMA_BYTES,
    Card,
    elements_a_multiprocessor,
    row_bytes,
    triton_vectorises,
    whole_vectors,
)

SHORT_ROW = 8192
"""H200, 16 rows of 4096: 2.0 us in Triton, 2.3 in CUDA C++; 8192 rows of 32000: 203 and 119."""
THREAD_ROW_BYTES, THREAD_ACCESSES = 64, 4
"""A row of which `cuda_known_length` has a thread, and accesses to it up to which slabs of many rows gain nothing: estimates.
They are chosen where the gradient has several 16-byte vectors a row and L2 does not hold it."""
SLAB_ROW_BYTES = 1024
"""Up to which many rows that begin within 16-byte vectors are processed in shared memory: an estimate, from `softmax`. H200, with
a block a row: 4,313,413 rows of 91 fp32 take 2592 us, in torch_eager 909; 805,879 of 3 bf16 take 485, in torch_compile 7.7."""
SPLIT_ROW_BYTES = 2**19
"""From which on several blocks share a row for the losses alone: an estimate. H200: 2 rows of 8,388,608 fp16 take 124 us in
clusters of eight blocks, and 27.4 in torch_compile."""


def cross_entropy(problem: Problem, card: Card) -> tuple[str, ...]:
    """A block of CUDA C++ a row, or several short rows a block; a thread a row of at most 64 bytes, which for few rows is no more
    than four accesses; as pieces of shared memory many rows of at most 1 KiB that are no whole 16-byte vectors, and backward also
    those of several vectors that L2 does not hold; Triton for rows of at most 8192 that are no more than the multiprocessors; for
    longer rows that are no more, a cluster of blocks a row, or from 512 KiB on blocks all over the GPU, and
    clusters for fewer than four rows a multiprocessor of more than 1 MiB; backward, Triton for few rows of at most 1024 elements
    and for rows of 2 KiB or more that are a multiple of 16 elements.

    Triton loads no vectors of other rows, which costs less than a launch up to 1024 elements a multiprocessor. H200: 23 rows of
    33,855,006 bf16 take 592 us in clusters and 3,954 with a block each, 2048 of 128,256 take 118 in both; backward, 4 rows of
    4096 bf16 take 1.7 us in CUDA C++ and 2.2 in Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (4096, 4096), (16, 128256), (500, 2**22), (2, 2**23), (10**6, 3), (10**6, 91), (10**6, 96))
    >>> [cross_entropy(Problem(op="cross_entropy", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['triton_block_per_row', 'cuda_row', 'cuda_cluster', 'cuda_cluster', 'cuda_split', 'cuda_known_length', 'cuda_slab_stages', \
'cuda_row']
    >>> shapes = ((4096, 32000), (4096, 50257), (4, 4096), (35, 40), (4096, 16), (10**6, 91), (10**6, 96))
    >>> sizes = [{"m": m, "v": v} for m, v in shapes]
    >>> backward = [Problem(op="cross_entropy", sizes=one, dtype="bf16", direction="backward") for one in sizes]
    >>> [cross_entropy(problem, H200)[0] for problem in backward]
    ['triton_online', 'cuda_row', 'cuda_row', 'triton_online', 'cuda_known_length', 'cuda_slab_stages', 'cuda_row']
    """
    if short := _short(problem, card):
        return short
    m, v = problem.sizes["m"], problem.sizes["v"]
    if problem.direction == "backward":
        if elements_a_multiprocessor(m * v, card) <= ONE_PROGRAM:
            vectors = whole_vectors(problem, "v") and v > ONE_PROGRAM
            return ("cuda_row", "triton_online") if vectors else ("triton_online", "cuda_row")
        programs = triton_vectorises(v) and row_bytes(problem, "v") >= SHORT_ROW_BYTES
        return ("triton_online", "cuda_row") if programs else ("cuda_row", "triton_online")
    if m <= card.multiprocessors and v <= SHORT_ROW:
        return ("triton_block_per_row", "cuda_row")
    if m <= card.multiprocessors and row_bytes(problem, "v") >= SPLIT_ROW_BYTES:
        return ("cuda_split", "cuda_cluster", "cuda_row")
    if m <= card.multiprocessors or (m < 4 * card.multiprocessors and row_bytes(problem, "v") > CLUSTER_ROW_BYTES):
        return ("cuda_cluster", "cuda_row")
    return ("cuda_row", "triton_online")


def with_grad(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters of blocks, and a block a row where there are no clusters; a thread a row of at most 64 bytes, which for
    few rows is no more than four accesses; as pieces of shared memory many rows of at most 1 KiB that are no whole 16-byte
    vectors, and of at most 64 bytes of several vectors if L2 does not hold them; Triton for no more rows than multiprocessors of
    at most 1024 elements, or of at most 8192 that are no whole vectors; several blocks a row for rows of more than 1 MiB that are
    at most two a multiprocessor.

    Few short rows take latency alone, and CUDA C++ waits for the elements before and after the vectors of a row. H200: 10 rows
    of 1,181,880 fp32, with a block each, take 207 us, and 70 in torch_compile.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((1024, 128256), (8, 1000), (5, 4001), (10, 2**21), (29, 2), (76_709, 15), (29, 15), (2**22, 16))
    >>> [with_grad(Problem(op="cross_entropy_with_grad", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['cuda_columns', 'triton_block_per_row', 'triton_block_per_row', 'cuda_split', 'cuda_known_length', 'cuda_slab_stages', \
'triton_block_per_row', 'cuda_slab_stages']
    """
    if short := _short(problem, card):
        return short
    m, v = problem.sizes["m"], problem.sizes["v"]
    if m <= card.multiprocessors and v <= (ONE_PROGRAM if whole_vectors(problem, "v") else SHORT_ROW):
        return ("triton_block_per_row", "cuda_row")
    if m <= 2 * card.multiprocessors and row_bytes(problem, "v") > CLUSTER_ROW_BYTES:
        return ("cuda_split", "cuda_row")
    return ("cuda_columns", "cuda_row")


def _short(problem: Problem, card: Card) -> tuple[str, ...]:
    """The variants for very short rows and for many short ones, or none."""
    m, of_row = problem.sizes["m"], row_bytes(problem, "v")
    accesses = of_row // gcd(TMA_BYTES, of_row)
    if of_row <= THREAD_ROW_BYTES and accesses <= THREAD_ACCESSES:
        has_gradient = problem.direction == "backward" or problem.op == "cross_entropy_with_grad"
        if has_gradient and whole_vectors(problem, "v") and accesses > 1 and m * of_row > card.l2_bytes:
            # A warp would write 16 bytes of each row at a time, which is half of a sector of L2.
            return ("cuda_slab_stages", "cuda_known_length", "cuda_row")
        return ("cuda_known_length", "cuda_slab", "cuda_row")
    if not whole_vectors(problem, "v") and of_row <= SLAB_ROW_BYTES and m * of_row >= SLAB_BYTES * card.multiprocessors:
        return ("cuda_slab_stages", "cuda_slab", "cuda_row")
    if of_row <= THREAD_ROW_BYTES and m > card.multiprocessors:
        return ("cuda_known_length", "cuda_slab", "cuda_row")
    return ()
