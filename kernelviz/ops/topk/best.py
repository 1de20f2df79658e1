"""The variant that a user of `topk` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

SORTED_ROW = 512
"""Elements that a warp of Triton sorts in registers, 16 a thread. H200: 33,217 rows of 412 fp32 take 805 us so and 1,436 by a
threshold, 3,123,653 of 367 fp16 6,799 and 23,441 by radix."""
SHORT_ROW = 8192
"""Elements of few rows that are read digit by digit. H200: 16 rows of 4096 take 6.1 us by radix and 9.5 by threshold; 16,384 of
8192 395 and 380, 10,656 of 432 bf16 110 and 157."""


def largest(problem: Problem, card: Card) -> tuple[str, ...]:
    """A threshold from a sample of the row; a bitonic sort for rows of at most 512 elements, and a selection digit by digit for
    rows of at most 8192 that are no more than the multiprocessors.

    A sort in registers has no atomic additions, and few barriers.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8, 100), (16, 4096), (4096, 32000))
    >>> [largest(Problem(op="topk", sizes={"m": m, "n": n, "k": 64}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_bitonic', 'cuda_radix_select', 'cuda_threshold']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if n <= SORTED_ROW:
        return ("triton_bitonic", "cuda_threshold")
    if m <= card.multiprocessors and n <= SHORT_ROW:
        return ("cuda_radix_select", "cuda_threshold")
    return ("cuda_threshold", "cuda_radix_select")
