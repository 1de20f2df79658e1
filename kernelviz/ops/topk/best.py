"""The variant that a user of `topk` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

ONE_WARP = 256
"""Elements that one warp of Triton sorts in registers, eight a thread."""
FEW_FIRST, MERGED_ROW = 8, 2048
"""Elements of the result up to which such sorts are merged for so long a row of many. H200: 8192 rows of 2048 fp16 take 46 us so
and 99 by radix for the first 2, 10,656 of 432 bf16 298 and 110 for 160; 91 of 399 5.9 and 3.4 for 5."""
SHORT_ROW = 8192
"""Elements of few rows that are read digit by digit. H200: 16 rows of 4096 take 6.1 us by radix and 9.5 by threshold, 16,384 of
8192 395 and 380, 432 of 536 fp32 44 and 34."""
TWO_DIGITS = 2
"""Bytes of a number of two digits of the radix."""


def largest(problem: Problem, card: Card) -> tuple[str, ...]:
    """A bitonic sort for rows of at most 256 elements, or of 2048 for at most the 8 largest if rows are more than
    multiprocessors; else selection digit by digit for 16-bit rows of at most 2048, or any of at most 8192 if rows are no more
    than multiprocessors; else a threshold from a sample of the row.

    A warp sorts without atomic additions and the barriers of a block.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8, 100, 64), (16, 4096, 64), (8192, 2048, 2), (10_656, 432, 160), (4096, 32000, 64))
    >>> [largest(Problem(op="topk", sizes=dict(zip("mnk", shape)), dtype="bf16"), H200)[0] for shape in shapes]
    ['triton_bitonic', 'cuda_radix_select', 'triton_bitonic', 'cuda_radix_select', 'cuda_threshold']
    """
    m, n, k = (problem.sizes[axis] for axis in "mnk")
    many = m > card.multiprocessors
    if n <= ONE_WARP or (many and n <= MERGED_ROW and k <= FEW_FIRST):
        return ("triton_bitonic", "cuda_threshold")
    two_digits = dtype(problem.dtype).itemsize_bytes == TWO_DIGITS
    if (n <= SHORT_ROW and not many) or (n <= MERGED_ROW and two_digits):
        return ("cuda_radix_select", "cuda_threshold")
    return ("cuda_threshold", "cuda_radix_select")
