"""The variant that a user of `topk` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

ONE_WARP = 256
"""Elements that one warp of Triton sorts in registers, eight a thread."""
SHORT_ROW = 8192
"""H200: 16 rows of 4096 take 6.1 us by radix and 9.5 by threshold; 16384 rows of 8192 take 395 and 380."""


def largest(problem: Problem, card: Card) -> tuple[str, ...]:
    """A threshold from a sample of the row; a bitonic sort for rows of at most 256, and digit by digit where rows of at most
    8192 are no more than the multiprocessors.

    One warp sorts 256 elements in registers, without the barriers of a block.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8, 100), (16, 4096), (4096, 32000))
    >>> [largest(Problem(op="topk", sizes={"m": m, "n": n, "k": 64}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_bitonic', 'cuda_radix_select', 'cuda_threshold']
    """
    if problem.sizes["n"] <= ONE_WARP:
        return ("triton_bitonic", "cuda_threshold")
    if problem.sizes["m"] <= card.multiprocessors and problem.sizes["n"] <= SHORT_ROW:
        return ("cuda_radix_select", "cuda_threshold")
    return ("cuda_threshold", "cuda_radix_select")
