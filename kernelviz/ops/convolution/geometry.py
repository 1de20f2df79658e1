"""Where a square filter lies on an image: padding, positions, and the rows that it covers. Imports no torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField

if TYPE_CHECKING:
    from torch import Tensor


def padding(side: int) -> int:
    """Rows and columns of zeros on each side of an image: half the filter.

    >>> [padding(side) for side in (1, 3, 7)]
    [0, 1, 3]
    """
    return side // 2


def positions(length: int, side: int, stride: int) -> int:
    """Positions of a filter along rows or columns, so rows or columns of the result.

    >>> [positions(56, side, stride) for side, stride in ((3, 1), (3, 2), (1, 2))]
    [56, 28, 28]
    """
    return (length + 2 * padding(side) - side) // stride + 1


def covered(length: int, side: int, stride: int) -> int:
    """Rows (or columns) of an image that the filter covers in any of its positions.

    >>> [covered(56, side, stride) for side, stride in ((3, 1), (3, 2), (1, 2), (1, 1))]
    [56, 56, 28, 56]
    """
    if side >= stride:  # no gap between two positions
        last = (positions(length, side, stride) - 1) * stride + side - padding(side)
        return min(length, last)
    begins = range(-padding(side), positions(length, side, stride) * stride - padding(side), stride)
    return sum(min(begin + side, length) - max(begin, 0) for begin in begins)


@dataclass(frozen=True, kw_only=True, slots=True)
class Geometry:
    """The sizes of a convolution: n images of h × w pixels with c channels, k filters of r × r, and p × q positions."""

    n: int
    h: int
    w: int
    c: int
    k: int
    r: int
    s: int

    @property
    def p(self) -> int:
        return positions(self.h, self.r, self.s)

    @property
    def q(self) -> int:
        return positions(self.w, self.r, self.s)

    @property
    def pad(self) -> int:
        return padding(self.r)

    @property
    def pixels(self) -> int:
        """Of the result: rows of the matrix product that a convolution is."""
        return self.n * self.p * self.q

    @property
    def terms(self) -> int:
        """Products that are added up for an element of the result."""
        return self.c * self.r * self.r


def geometry_of(x_NHWC: Tensor, w_KRRC: Tensor, s: int) -> Geometry:
    """The sizes of these tensors with the stride `s`."""
    (n, h, w, c), (k, r) = x_NHWC.shape, w_KRRC.shape[:2]
    return Geometry(n=n, h=h, w=w, c=c, k=k, r=r, s=s)


MOST_PIXELS = 2**31 - 2**16
"""Pixels of the result that a kernel can number in 32 bits, with a tile that begins before the last one."""


def require_pixels(g: Geometry) -> None:
    """Raises BadField for more pixels of the result than a kernel numbers in 32 bits."""
    if g.pixels > MOST_PIXELS:
        raise BadField(
            "size n", g.n, f"the result has {g.pixels:,} pixels, this kernel numbers at most {MOST_PIXELS:,}"
        )
