"""What a Triton kernel is told of a row length, so that its loads are as wide as the rows allow."""

from __future__ import annotations

import math

SPECIALISED_MULTIPLE = 16
"""Triton compiles a kernel of its own for integers that are multiples of this."""
WIDEST = 8
"""16-bit elements of 16 bytes, the widest load."""


def divisor_of(length: int) -> int:
    """A divisor of a row length, at most 8, that a kernel is compiled for; 1 where Triton finds a larger one itself.

    A kernel that computes ``length // divisor * divisor`` tells the compiler that rows begin at multiples of it. Without that,
    rows of 164 elements are read 2 bytes at a time, which no asynchronous copy can do; with it, 8 bytes.

    >>> [divisor_of(length) for length in (53, 82, 164, 168, 176)]
    [1, 2, 4, 8, 1]
    """
    return 1 if length % SPECIALISED_MULTIPLE == 0 else math.gcd(length, WIDEST)
