"""The variant that a user of a cross entropy gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    CLUSTER_ROW_BYTES,
    ONE_PROGRAM,
    Card,
    elements_a_multiprocessor,
    row_bytes,
    triton_vectorises,
    whole_vectors,
)

SHORT_ROW = 8192
"""H200, 16 rows of 4096: 2.0 us in Triton, 2.3 in CUDA C++; 8192 rows of 32000: 203 and 119."""


def cross_entropy(problem: Problem, card: Card) -> tuple[str, ...]:
    """A block of CUDA C++ a row; Triton for rows of at most 8192 that are no more than the multiprocessors, and backward,
    except for many rows of no multiple of 16 elements; a cluster of blocks a row for longer rows that are no more than the
    multiprocessors, and for fewer than four a multiprocessor of more than 1 MiB.

    Triton loads no vectors of such rows, which costs less than a launch up to 1024 elements a multiprocessor. H200: 23 rows of
    33,855,006 bf16 take 592 us in clusters and 3,954 with a block each, 2048 of 128,256 take 118 in both. A cluster
    has up to eight blocks, as many as the multiprocessors have room for, and one where there are many rows.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (4096, 4096), (16, 128256), (500, 2**22))
    >>> [cross_entropy(Problem(op="cross_entropy", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['triton_block_per_row', 'cuda_row', 'cuda_cluster', 'cuda_cluster']
    >>> sizes = ({"m": 4096, "v": 32000}, {"m": 4096, "v": 50257})
    >>> backward = [Problem(op="cross_entropy", sizes=one, dtype="bf16", direction="backward") for one in sizes]
    >>> [cross_entropy(problem, H200)[0] for problem in backward]
    ['triton_online', 'cuda_row']
    """
    if problem.direction == "backward":
        few = elements_a_multiprocessor(problem.sizes["m"] * problem.sizes["v"], card) <= 1024
        even = triton_vectorises(problem.sizes["v"])
        return ("triton_online", "cuda_row") if even or few else ("cuda_row", "triton_online")
    m = problem.sizes["m"]
    if m <= card.multiprocessors and problem.sizes["v"] <= SHORT_ROW:
        return ("triton_block_per_row", "cuda_row")
    if m <= card.multiprocessors or (m < 4 * card.multiprocessors and row_bytes(problem, "v") > CLUSTER_ROW_BYTES):
        return ("cuda_cluster", "cuda_row")
    return ("cuda_row", "triton_online")


def with_grad(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters of blocks, and a block a row where there are no clusters; Triton for no more rows than
    multiprocessors of at most 1024 elements, or of at most 8192 that are no whole 16-byte vectors.

    Few short rows take latency alone, and CUDA C++ waits for the elements before and after the vectors of a row.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((1024, 128256), (8, 1000), (5, 4001))
    >>> [with_grad(Problem(op="cross_entropy_with_grad", sizes={"m": m, "v": v}, dtype="bf16"), H200)[0] for m, v in shapes]
    ['cuda_columns', 'triton_block_per_row', 'triton_block_per_row']
    """
    m, v = problem.sizes["m"], problem.sizes["v"]
    if m <= card.multiprocessors and v <= (ONE_PROGRAM if whole_vectors(problem, "v") else SHORT_ROW):
        return ("triton_block_per_row", "cuda_row")
    return ("cuda_columns", "cuda_row")
