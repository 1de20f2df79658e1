"""The variant that a user of `row_sum` or `argmax` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

THREAD_ROW_BYTES = 64
"""Of a row for a thread: the L1 (256 KiB) holds as much of 2048 rows twice, so that each sector is read from memory once."""


def row_sum(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel that prefetches vectors and chooses threads and parts of a row by size; for rows of at most 64 bytes a
    thread a row, or a program of Triton where they are no more than the multiprocessors.

    A warp has more threads than such a row has vectors. Few rows take the latency of one load.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (2**20, 3), (4, 16))
    >>> [row_sum(Problem(op="row_sum", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_streamed', 'cuda_row_per_thread', 'triton_block_per_row']
    """
    if _short(problem):
        few = problem.sizes["m"] <= card.multiprocessors
        return ("triton_block_per_row" if few else "cuda_row_per_thread", "cuda_streamed")
    return ("cuda_streamed", "cuda_adaptive")


def argmax(problem: Problem, card: Card) -> tuple[str, ...]:
    """The packed maximum of each 16-byte vector; a thread a row for more rows of at most 64 bytes than multiprocessors.

    A warp has more threads than such a row has vectors.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16, 4096), (2**20, 3))
    >>> [argmax(Problem(op="argmax", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_words', 'cuda_row_per_thread']
    """
    if _short(problem) and problem.sizes["m"] > card.multiprocessors:
        return ("cuda_row_per_thread", "cuda_words")
    return ("cuda_words", "cuda_adaptive")


def _short(problem: Problem) -> bool:
    return problem.sizes["n"] * dtype_named(problem.dtype).itemsize_bytes <= THREAD_ROW_BYTES
