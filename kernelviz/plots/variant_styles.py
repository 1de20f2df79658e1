"""One colour and one marker for each variant, the same in every chart, on every page, on every machine.

The style of a variant of the catalogue follows from its position in the op. Any other variant (of a plug-in or another tool)
gets a free style by a hash of its name, so that a new variant never changes the style of others.
"""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

from kernelviz.ops import catalogue

# Ten colours with a contrast of at least 3:1 to white and to #0F1413 (WCAG 2.2, 1.4.11), so that one figure serves the
# light and the dark page. Neighbours differ in hue and in lightness.
COLOURS = (
    "#4C78A8",
    "#D9730D",
    "#3D9A5B",
    "#B0589E",
    "#DC4A4A",
    "#2697A3",
    "#96704F",
    "#8E8A1E",
    "#8A6FD1",
    "#7C8784",
)
MARKERS = (
    "circle",
    "square",
    "diamond",
    "triangle-up",
    "star",
    "pentagon",
    "triangle-down",
    "hexagram",
    "hourglass",
    "bowtie",
    "cross",
    "star-square",
    "diamond-wide",
    "triangle-left",
    "diamond-tall",
    "triangle-right",
)
"""More markers than the largest op has variants, so that the marker alone identifies a variant."""
NEUTRAL = "#7C8784"
"""The colour of roofs, boundaries and frames. It is readable on both backgrounds and less prominent than a variant."""
BAD, GOOD = "#DC4A4A", "#3D9A5B"
"""The colours of slower and faster. The text beside a mark always says the same."""


@dataclass(frozen=True, slots=True)
class Style:
    """The colour and the marker of a variant in charts."""

    colour: str
    marker: str


@lru_cache(maxsize=1)
def _ladders() -> dict[str, tuple[str, ...]]:
    return {op.name: tuple(v.name for v in op.variants) for op in catalogue().values()}


def style_of(op: str, variant: str) -> Style:
    """The variant's colour and marker.

    >>> style_of("add", "torch_eager") == style_of("add", "torch_eager"), style_of("no_such_op", "mine").marker in MARKERS
    (True, True)
    """
    ladder = _ladders().get(op, ())
    if variant in ladder:
        return series(ladder.index(variant))
    number = int.from_bytes(hashlib.sha256(variant.encode()).digest()[:8], "big")
    colours = COLOURS[len(ladder) :] or COLOURS
    markers = MARKERS[len(ladder) :] or MARKERS
    return Style(colours[number % len(colours)], markers[(number // len(colours)) % len(markers)])


def series(number: int) -> Style:
    """The style of a line that is not a variant (one size of an axis, for example), by its number in the chart.

    >>> series(0) == series(1)
    False
    """
    return Style(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
