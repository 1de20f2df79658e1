"""The variant that a user of `topk` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

ONE_WARP = 256
"""Elements that one warp of Triton sorts in registers, eight a thread."""
SHORT_ROW = 8192
"""H200: 16 rows of 4096 take 6.1 us by radix and 9.5 by threshold; 16384 rows of 8192 take 395 and 380."""
TWO_DIGITS, MOST_BY_TWO_DIGITS = 2, 2048
"""Bytes of a number of two digits of the radix, and the longest of many rows of those for which it is chosen, an estimate. H200:
10,656 rows of 432 bf16 take 110 us by radix and 157 by threshold; 432 rows of 536 fp32 take 44 and 34."""


FEW, SHORT_TWO_DIGITS = 2, 2**14
"""Rows a multiprocessor, and elements of theirs that two digits are chosen for. H200: 256 rows of 16,384 fp16 take 23 us by radix
and 24.4 by threshold; rows of 4 bytes from 6,280 elements on take as long by both."""


def largest(problem: Problem, card: Card) -> tuple[str, ...]:
    """A threshold from a sample of the row; a bitonic sort for rows of at most 256, and digit by digit where rows of at most 8192
    are no more than the multiprocessors, or 16-bit numbers are in rows of at most 2048, or of at most 16384 of which each
    multiprocessor has two.

    One warp sorts 256 elements in registers, without the barriers of a block.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8, 100), (16, 4096), (10_656, 432), (4096, 32000))
    >>> [largest(Problem(op="topk", sizes={"m": m, "n": n, "k": 64}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_bitonic', 'cuda_radix_select', 'cuda_radix_select', 'cuda_threshold']
    """
    if problem.sizes["n"] <= ONE_WARP:
        return ("triton_bitonic", "cuda_threshold")
    longest = SHORT_TWO_DIGITS if problem.sizes["m"] <= FEW * card.multiprocessors else MOST_BY_TWO_DIGITS
    two_digits = dtype(problem.dtype).itemsize_bytes == TWO_DIGITS and problem.sizes["n"] <= longest
    if two_digits or (problem.sizes["m"] <= card.multiprocessors and problem.sizes["n"] <= SHORT_ROW):
        return ("cuda_radix_select", "cuda_threshold")
    return ("cuda_threshold", "cuda_radix_select")
