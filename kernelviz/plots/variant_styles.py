"""One colour and one marker for each variant: unique within a run, and the same in every chart and on every page.

The style of a variant of the catalogue follows from its position in the op, on every machine. Any other variant (of a plug-in or
another tool) gets one that no variant of the op has, by a hash of its name. If two such names would share a colour or a marker,
one gives way:

1. the variants of this server's plug-ins are styled first, so that their styles are the same in every run and in the form;
2. then the variants of the run that a page or picture is about (`beside`), so that nothing else on it changes their styles;
3. then all others, for example those of a second run.

Within each group, the names are styled in alphabetical order.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, product
from types import MappingProxyType

from kernelviz.ops import Op, catalogue

# Colours with a contrast of at least 3:1 to white and to #0F1413 (WCAG 2.2, 1.4.11), so that one figure serves the light and
# the dark page. Any two, and the grey of NEUTRAL, are at least 0.08 apart in OKLab (four times a just noticeable difference).
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
    "#286E50",
    "#3C96F0",
    "#BE8296",
    "#AA3C50",
    "#785A78",
    "#6450BE",
    "#6E6E00",
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
    "star-diamond",
    "triangle-ne",
    "star-triangle-up",
    "triangle-sw",
    "star-triangle-down",
    "triangle-nw",
    "triangle-se",
    "x",
    "hexagon",
    "octagon",
    "hexagon2",
    "arrow-wide",
    "arrow",
)
"""More markers than a run of the largest op can have variants, so that the marker alone identifies a variant. Their number has no
divisor in common with that of the colours, so a colour and a marker meet again only after 464 variants."""
_NEVER_DOTTED = ("hourglass", "bowtie", "arrow-wide", "arrow")
"""Markers of which Plotly has no variant with a dot."""
NEUTRAL = "#7C8784"
"""The colour of roofs, boundaries and frames, of which no variant is. It is readable on both backgrounds and less prominent."""
BAD, GOOD = "#DC4A4A", "#3D9A5B"
"""The colours of slower and faster. The text beside a mark always says the same."""


@dataclass(frozen=True, slots=True)
class Style:
    """The colour and the marker of a variant in charts."""

    colour: str
    marker: str


Styles = Mapping[str, Style]
"""The styles of the variants of one op by their names."""


@lru_cache(maxsize=1)
def _ladders() -> dict[str, dict[str, int]]:
    """The number of the style of each variant, by op."""
    return {op.name: _numbers(op) for op in catalogue().values()}


def _numbers(op: Op) -> dict[str, int]:
    """A variant's position in the op, the baseline first, so that torch looks the same in most ops. If there are more variants
    than markers, variants of different number formats or directions, which no run has together, have the same number."""
    ordered = sorted(op.variants, key=lambda variant: variant.name != op.baseline)
    if len(ordered) < len(MARKERS):
        return {v.name: place for place, v in enumerate(ordered)}
    numbers: dict[str, int] = {}
    passes: list[set[tuple[str, str]]] = []
    for variant in ordered:
        own = set(product(variant.dtypes or op.dtypes, variant.directions))
        free = next((i for i, used in enumerate(passes) if own.isdisjoint(used)), len(passes))
        if free == len(passes):
            passes.append(set())
        passes[free] |= own
        numbers[variant.name] = free
    return numbers


class _PluginVariants:
    """The variants of the server's plug-ins by op."""

    by_op: Mapping[str, frozenset[str]] = MappingProxyType({})


def set_plugin_variants(by_op: Mapping[str, Iterable[str]]) -> None:
    """Name the variants that the plug-ins of this server offer to everybody, by op. Their styles are the same in every run."""
    _PluginVariants.by_op = MappingProxyType({op: frozenset(names) for op, names in by_op.items()})


def styles_of(op: str, variants: Iterable[str], beside: Sequence[str] = ()) -> Styles:
    """The styles of these variants and of those of `beside`, no two the same. They do not depend on the order of the variants.

    `beside`: the variants of the run that the page is about. Their styles do not depend on `variants`.

    >>> styles = styles_of("add", ["torch_eager", "mine", "yours"])
    >>> len(set(styles.values())), styles["torch_eager"] == style_of("add", "torch_eager")
    (3, True)
    """
    shared = _PluginVariants.by_op.get(op, frozenset())
    names = (*beside, *variants)
    styles = _styles(op, *(tuple(sorted(set(group))) for group in (shared, beside, names)))
    return MappingProxyType({name: styles[name] for name in names})


def style_of(op: str, variant: str, beside: Sequence[str] = ()) -> Style:
    """The variant's colour and marker. `beside`: the variants of its run, see `styles_of`."""
    return styles_of(op, (variant,), beside)[variant]


@lru_cache(maxsize=512)
def _styles(op: str, *groups: Sequence[str]) -> Styles:
    """The styles of all these variants. The styles of a group do not depend on later groups."""
    styles = {name: series(number) for name, number in _ladders().get(op, {}).items()}
    for name in chain.from_iterable(groups):
        if name not in styles:
            styles[name] = _free(name, tuple(styles.values()))
    return MappingProxyType(styles)


_PAIRS = tuple(Style(colour, marker) for marker, colour in product(MARKERS, COLOURS))


def _free(name: str, used: Sequence[Style]) -> Style:
    """The first style from the hash of the name on whose colour and marker are least used, and which is not used itself."""
    colours, markers = Counter(s.colour for s in used), Counter(s.marker for s in used)
    start = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") % len(_PAIRS)
    pairs = (*_PAIRS[start:], *_PAIRS[:start])
    uses = Counter(used)
    return min(pairs, key=lambda s: (uses[s], colours[s.colour] + markers[s.marker]))


def with_filling(marker: str, filling: str) -> str:
    """The symbol of a marker with that filling: "", "-open", "-dot" or "-open-dot".

    A marker that Plotly cannot draw with a dot is open instead.

    >>> with_filling("circle", "-dot"), with_filling("bowtie", "-dot"), with_filling("bowtie", "")
    ('circle-dot', 'bowtie-open', 'bowtie')
    """
    return f"{marker}-open" if marker in _NEVER_DOTTED and filling.endswith("-dot") else marker + filling


def series(number: int) -> Style:
    """The style of a line that is not a variant (one size of an axis, for example), by its number in the chart.

    >>> series(0) == series(1)
    False
    """
    return Style(COLOURS[number % len(COLOURS)], MARKERS[number % len(MARKERS)])
