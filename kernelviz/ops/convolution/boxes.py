"""The box of images that a Gluon program computes, by the sizes of a convolution. Imports neither torch nor Triton."""

from __future__ import annotations

from dataclasses import dataclass

from kernelviz.ops.convolution.geometry import Geometry

SIDES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
DEPTHS = (64, 32, 16)
"""Channels of a step: the most of which the channels are a multiple."""

RELATIVE_TIMES = {(256, 128): 1.0, (128, 256): 1.0, (128, 128): 0.53, (64, 256): 0.6}
"""Of tiles of so many filters and pixels, on an H200 (3×3, 256 channels, 14×14, 256 images)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Box:
    """A program computes `filters` filters at `rows` × `columns` pixels of each of `images` images."""

    images: int
    rows: int
    columns: int
    filters: int
    depth: int

    @property
    def pixels(self) -> int:
        return self.images * self.rows * self.columns

    @property
    def half(self) -> tuple[int, int, int]:
        """Images, rows and columns of the first half of the pixels, in their order."""
        if self.images > 1:
            return self.images // 2, self.rows, self.columns
        return (1, self.rows // 2, self.columns) if self.rows > 1 else (1, 1, self.columns // 2)

    def count(self, g: Geometry) -> int:
        """Boxes of the result, for each tile of filters."""
        boxes = -(-g.n // self.images) * -(-g.p // self.rows) * -(-g.q // self.columns)
        return boxes * -(-g.k // self.filters)


def box_of(g: Geometry, filters: int, pixels: int) -> Box:
    """The box of so many pixels of which least lies outside of the result, and of these the one with most neighbouring pixels.

    With a stride, pixels of a box are not neighbours in x: a box has the same pixel of many images.

    >>> def box(n, side, s):
    ...     b = box_of(Geometry(n=n, h=side, w=side, c=64, k=256, r=3, s=s), 256, 128)
    ...     return b.images, b.rows, b.columns
    >>> box(256, 56, 1), box(256, 28, 1), box(256, 7, 1), box(2, 64, 1), box(256, 56, 2)
    ((2, 8, 8), (8, 4, 4), (128, 1, 1), (1, 2, 64), (128, 1, 1))
    """
    depth = next((depth for depth in DEPTHS if g.c % depth == 0), DEPTHS[-1])
    candidates = [
        Box(images=pixels // (rows * columns), rows=rows, columns=columns, filters=filters, depth=depth)
        for rows in SIDES
        for columns in SIDES
        if rows * columns <= pixels and (g.s == 1 or rows * columns == 1)
    ]
    return min(candidates, key=lambda b: (b.count(g), b.images, b.rows))


def choose(g: Geometry, processors: int) -> Box:
    """The box with the shortest expected time, and of equal ones with fewest tiles: rounds as long as `RELATIVE_TIMES` says.

    >>> [choose(Geometry(n=256, h=h, w=h, c=c, k=c, r=3, s=1), 132).pixels for h, c in ((56, 64), (14, 256), (7, 512))]
    [256, 128, 128]
    """
    boxes = {box_of(g, filters, pixels): time for (filters, pixels), time in RELATIVE_TIMES.items()}
    return min(boxes, key=lambda box: (-(-box.count(g) // processors) * boxes[box], box.count(g)))
