"""Rows of any length walked as one vector: how far apart the 16-byte vectors are that a thread processes."""

from __future__ import annotations

import math


def flat_stride(whole: int, n: int, width: int, most: int) -> tuple[int, int]:
    """Distance of a thread's vectors in a matrix of `whole` vectors with rows of n elements, and their number, at most `most`.

    A multiple of n elements, so that all of them are in the same columns; the matrix itself for one vector a thread.

    >>> flat_stride(1739267, 662578, 8, 4), flat_stride(90784, 181569, 4, 4), flat_stride(3000000, 3, 8, 4)
    ((662578, 3), (90784, 1), (750000, 4))
    """
    period = n // math.gcd(n, width)
    stride = period * max(1, -(-whole // (most * period)))
    rows = -(-whole // stride)
    return (stride, rows) if rows > 1 else (whole, 1)
