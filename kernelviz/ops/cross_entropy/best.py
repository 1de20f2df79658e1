"""The variant that a user of a cross entropy gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

SHORT_ROW = 8192
"""H200, 16 rows of 4096: 2.0 us in Triton, 2.3 in CUDA C++; 8192 rows of 32000: 203 and 119."""


def cross_entropy(problem: Problem, card: Card) -> tuple[str, ...]:
    """A block of CUDA C++ a row; Triton for rows of at most 8192 that are no more than the multiprocessors, and backward.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [cross_entropy(Problem(op="cross_entropy", sizes={"m": m, "v": 4096}, dtype="bf16"), H200)[0] for m in (16, 4096)]
    ['triton_block_per_row', 'cuda_row']
    """
    if problem.direction == "backward":
        return ("triton_online", "cuda_row")
    if problem.sizes["m"] <= card.multiprocessors and problem.sizes["v"] <= SHORT_ROW:
        return ("triton_block_per_row", "cuda_row")
    return ("cuda_row", "triton_online")


def with_grad(problem: Problem, card: Card) -> tuple[str, ...]:
    """Persistent clusters of blocks at every size, and a block a row where there are no clusters.

    >>> from kernelviz.ops.catalog.best import H200
    >>> with_grad(Problem(op="cross_entropy_with_grad", sizes={"m": 1024, "v": 128256}, dtype="bf16"), H200)
    ('cuda_columns', 'cuda_row')
    """
    return ("cuda_columns", "cuda_row")
