"""The marker of a variant as a small image, so that lists and buttons show the same sign as the charts."""

import math
from base64 import b64encode
from collections.abc import Sequence
from functools import lru_cache

from kernelviz.plots.variant_styles import Style, style_of

Points = tuple[tuple[float, float], ...]


def _star(points: int, inner: float, turned: float = 0.0) -> Points:
    """A star of radius 1 with its first point up; `inner` is the radius between its points, `turned` a part of a turn."""
    radii = (1.0, inner) * points
    angles = [math.tau * (i / (2 * points) + turned) for i in range(2 * points)]
    return tuple((r * math.sin(a), -r * math.cos(a)) for r, a in zip(radii, angles, strict=True))


# The shapes of Plotly, scaled to one size; y points down, as in SVG.
_UP: Points = ((0.0, -0.9), (1.0, 0.8), (-1.0, 0.8))
_CORNER: Points = ((-0.9, -0.9), (0.9, -0.9), (0.9, 0.9))
"""A right-angled triangle that points to the upper right."""
_CROSS: Points = tuple(
    (x / 3, y / 3)
    for x, y in (
        (-1, -3),
        (1, -3),
        (1, -1),
        (3, -1),
        (3, 1),
        (1, 1),
        (1, 3),
        (-1, 3),
        (-1, 1),
        (-3, 1),
        (-3, -1),
        (-1, -1),
    )
)
_SHAPES: dict[str, Points] = {
    "square": ((-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)),
    "diamond": ((0, -1), (1, 0), (0, 1), (-1, 0)),
    "triangle-up": _UP,
    "triangle-down": tuple((x, -y) for x, y in _UP),
    "star": _star(5, 0.382),
    "pentagon": _star(5, math.cos(math.pi / 5)),
    "hexagram": _star(6, 1 / math.sqrt(3)),
    "hourglass": ((-0.8, -0.9), (0.8, -0.9), (-0.8, 0.9), (0.8, 0.9)),
    "bowtie": ((-0.9, -0.8), (-0.9, 0.8), (0.9, -0.8), (0.9, 0.8)),
    "cross": _CROSS,
    "diamond-wide": ((0, -0.7), (1.1, 0), (0, 0.7), (-1.1, 0)),
    "diamond-tall": ((0, -1.1), (0.7, 0), (0, 1.1), (-0.7, 0)),
    "triangle-left": tuple((y, x) for x, y in _UP),
    "triangle-right": tuple((-y, x) for x, y in _UP),
    "star-square": tuple((1.3 * x, 1.3 * y) for x, y in _star(4, 0.5, turned=1 / 8)),
    "star-diamond": _star(4, 0.4),
    "star-triangle-up": _star(3, 0.3),
    "star-triangle-down": _star(3, 0.3, turned=1 / 2),
    "triangle-ne": _CORNER,
    "triangle-nw": tuple((-x, y) for x, y in _CORNER),
    "triangle-se": tuple((x, -y) for x, y in _CORNER),
    "triangle-sw": tuple((-x, -y) for x, y in _CORNER),
    "x": tuple(((x - y) / math.sqrt(2), (x + y) / math.sqrt(2)) for x, y in _CROSS),
    "hexagon": _star(6, math.cos(math.pi / 6)),
    "octagon": _star(8, math.cos(math.pi / 8), turned=1 / 16),
    "hexagon2": _star(6, math.cos(math.pi / 6), turned=1 / 12),
    "arrow-wide": ((0, -1), (1.1, 0.4), (0.6, 0.8), (0, 0.95), (-0.6, 0.8), (-1.1, 0.4)),
    "arrow": ((0, -1.1), (0.62, 0.9), (-0.62, 0.9)),
}  # fmt: skip
"""Corners by marker; a circle has none."""


@lru_cache(maxsize=256)
def shape(style: Style) -> str:
    """The marker as an SVG element round the origin, about 14 pixels wide.

    >>> shape(Style(colour="#D9730D", marker="circle"))
    '<circle r="6.5" fill="#D9730D"/>'
    """
    if style.marker == "circle":
        return f'<circle r="6.5" fill="{style.colour}"/>'
    corners = " ".join(f"{7 * x:.2f},{7 * y:.2f}" for x, y in _SHAPES[style.marker])
    return f'<polygon points="{corners}" fill="{style.colour}"/>'


def svg(style: Style) -> str:
    """The marker as an SVG image of 16 by 16 pixels.

    >>> 'fill="#D9730D"' in svg(Style(colour="#D9730D", marker="square"))
    True
    """
    return f'<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16" viewBox="-8 -8 16 16">{shape(style)}</svg>'


def mark(op: str, variant: str, beside: Sequence[str] = ()) -> str:
    """The marker of the variant as a Markdown image without alternative text, because the name is beside it.

    `beside`: the variants of its run, see `styles_of`.
    """
    return f"![](data:image/svg+xml;base64,{b64encode(svg(style_of(op, variant, beside)).encode()).decode()})"
