"""A small chart of a run as an SVG image: for the gallery, where a page has many, and for the card of a run.

It is drawn here and not by Plotly, because a browser needs 100 ms for each chart of Plotly and none for an image.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from kernelviz.metrics.sketch import Line, Sketch
from kernelviz.plots.marker_images import shape
from kernelviz.plots.variant_styles import NEUTRAL, Style, Styles, styles_of
from kernelviz.text import format_size
from kernelviz.text.insight import QUANTITIES, format_quantity

_TEXT_PX = 12
_BELOW = 1.4
"""Space under the smallest time of a logarithmic chart, as a factor."""
_ABOVE = 1.08
"""Space above the largest value, as a factor."""
_SCHEMES = """<style>
text { font: 12px Inter, 'Source Sans', sans-serif; fill: #434A47 }
@media (prefers-color-scheme: dark) { text { fill: #CDD4D0 } }
</style>"""
"""The colour of text follows the scheme of the page; all other colours have enough contrast on both backgrounds."""


@dataclass(frozen=True, slots=True)
class Frame:
    """The area of the plot in pixels, and the ranges of both axes as they are drawn (logarithms on a logarithmic axis)."""

    left: float
    top: float
    width: float
    height: float
    x: tuple[float, float]
    y: tuple[float, float]
    log_y: bool

    def place(self, x: float, y: float) -> tuple[float, float]:
        """The pixel of a point."""
        across = _share(_log(x), self.x)
        up = _share(math.log(y) if self.log_y else y, self.y)
        return self.left + across * self.width, self.top + (1 - up) * self.height


def thumbnail(op: str, sketch: Sketch, *, width: int = 320, height: int = 170) -> str:
    """The small chart with the ends of its axes, as an SVG image whose text follows the light or dark scheme of the page."""
    top, bottom = _TEXT_PX + 10, _TEXT_PX + 8
    frame = frame_of(sketch, 6, top, width - 14, height - top - bottom)
    parts = [_SCHEMES]
    if frame is None:
        parts.append(f'<text x="6" y="{height / 2:.0f}">no correct time</text>')
    else:
        parts += plot(sketch, styles_of(op, (line.variant for line in sketch.lines), sketch.variants), frame)
        first, last = (format_size(round(math.exp(x))) for x in _ends(sketch))
        axes = escape(" = ".join(sketch.axes))
        largest = format_quantity(sketch.quantity, _values(sketch)[1])
        parts += [
            f'<text x="6" y="{_TEXT_PX}">{QUANTITIES[sketch.quantity]}, up to {largest}</text>',
            f'<text x="6" y="{height - 4}">{axes} = {first}</text>',
            f'<text x="{width - 8}" y="{height - 4}" text-anchor="end">{last}</text>' if first != last else "",
        ]
    return image(width, height, parts)


def image(width: int, height: int, parts: Sequence[str]) -> str:
    """An SVG document of these parts."""
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">'
        f"{''.join(parts)}</svg>"
    )


def frame_of(sketch: Sketch, left: float, top: float, width: float, height: float) -> Frame | None:
    """The frame in which the sketch fills that area; None if it has no lines."""
    if not sketch.lines:
        return None
    low, high = _values(sketch)
    log_y = sketch.quantity == "time"
    y = (math.log(low / _BELOW), math.log(high * _ABOVE)) if log_y else (0.0, high * _ABOVE)
    return Frame(left, top, width, height, _ends(sketch), y, log_y)


def plot(sketch: Sketch, styles: Styles, frame: Frame) -> list[str]:
    """Grid, roof, lines, and at the end of each line the marker of its variant."""
    bottom, right = frame.top + frame.height, frame.left + frame.width
    rules = [frame.top, frame.top + frame.height / 2, bottom]
    grid = "".join(f"M{frame.left:.1f} {y:.1f}H{right:.1f}" for y in rules)
    parts = [f'<path d="{grid}" stroke="{NEUTRAL}" stroke-opacity=".3" fill="none"/>']
    if len(sketch.roof) > 1:
        path = _path([frame.place(x, y) for x, y in sketch.roof])
        parts.append(f'<path d="{path}" stroke="{NEUTRAL}" stroke-dasharray="5 4" fill="none"/>')
    styled = [(line, styles[line.variant]) for line in sketch.lines]
    lines = "".join(_line(line, style, frame) for line, style in styled)
    parts.append(f'<g stroke-width="1.8" stroke-linejoin="round" fill="none">{lines}</g>')
    return parts + [_end(line, style, frame) for line, style in styled]


def _line(line: Line, style: Style, frame: Frame) -> str:
    path = _path([frame.place(x, y) for x, y in zip(line.x, line.y, strict=True)])
    return f'<path d="{path}" stroke="{style.colour}"/>'


def _end(line: Line, style: Style, frame: Frame) -> str:
    x, y = frame.place(line.x[-1], line.y[-1])
    return f'<g transform="translate({x:.1f} {y:.1f}) scale(.6)">{shape(style)}</g>'


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def _ends(sketch: Sketch) -> tuple[float, float]:
    """The logarithms of the smallest and the largest size."""
    sizes = [x for line in sketch.lines for x in line.x]
    return _log(min(sizes)), _log(max(sizes))


def _log(size: float) -> float:
    """The logarithm of a size; an offset of 0 is drawn as half a byte.

    >>> _log(1), round(math.exp(_log(0)), 3)
    (0.0, 0.5)
    """
    return math.log(size or 0.5)


def _values(sketch: Sketch) -> tuple[float, float]:
    """The smallest and the largest value of the lines and the roof."""
    values = [y for line in sketch.lines for y in line.y] + [y for _, y in sketch.roof]
    return min(values), max(values)


def _share(value: float, ends: tuple[float, float]) -> float:
    """Where the value is between both ends, from 0 to 1; in the middle if they are the same."""
    low, high = ends
    return (value - low) / (high - low) if high > low else 0.5
