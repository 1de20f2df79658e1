"""Labels after the last point of lines, which identify lines of the same colour."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Literal, get_args

from kernelviz.plots.frame import Draft
from kernelviz.text import format_size

Dash = Literal["solid", "dot", "dash", "dashdot"]
DASHES: tuple[Dash, ...] = get_args(Dash)
_SIGNS: Mapping[Dash, str] = {"solid": "—", "dot": "···", "dash": "- -", "dashdot": "-·-"}
"""A dash as characters, before the name of its lines."""
Sizes = tuple[tuple[str, int], ...]
"""The sizes of the other axes, which tell the lines of a variant apart."""
Dashes = Mapping[Sizes, Dash]
MOST = 12
"""With more lines than this, only the line with the highest end of each group is labelled."""
_LINE_PX = 13
_LETTER_PX = 6.5
_BESIDE_PX = 8


@dataclass(frozen=True, slots=True)
class End:
    """The end of a line, in the units of the axes, and the label of its group (``k = 8``)."""

    x: float
    y: float
    label: str


def dashes_of(sizes: Iterable[Sizes]) -> Dashes:
    """A dash for the lines of each of these sizes; empty if there is one line for each variant, or more than there are dashes.

    >>> dashes_of([(("l", 8192),), (("l", 65536),), (("l", 8192),)])
    {(('l', 8192),): 'solid', (('l', 65536),): 'dot'}
    >>> dashes_of([(), ()]), dashes_of([(("k", k),) for k in range(9)])
    ({}, {})
    """
    several = list(dict.fromkeys(one for one in sizes if one))
    return dict(zip(several, DASHES, strict=False)) if 1 < len(several) <= len(DASHES) else {}


def line_name(sizes: Sizes, dashes: Dashes) -> str:
    """The sizes of a line, after its dash if it has one of its own.

    >>> line_name((("l", 65536),), {}), line_name((("l", 65536),), {(("l", 65536),): "dot"})
    ('l = 65,536', '··· l = 65,536')
    """
    name = ", ".join(f"{axis} = {format_size(size)}" for axis, size in sizes)
    return f"{_SIGNS[dashes[sizes]]} {name}" if sizes in dashes else name


def merged(ends: Sequence[End], least: float) -> list[list[End]]:
    """The ends from lowest to highest; neighbours with the same label that are closer than `least` are merged.

    >>> [[e.y for e in some] for some in merged([End(8, y, words) for y, words in ((1, "a"), (3, "a"), (4, "b"), (9, "a"))], 5)]
    [[1, 3], [4], [9]]
    """
    groups: list[list[End]] = []
    for end in sorted(ends, key=lambda e: e.y):
        if groups and groups[-1][-1].label == end.label and end.y - groups[-1][-1].y < least:
            groups[-1].append(end)
        else:
            groups.append([end])
    return groups


def named(ends: Sequence[End]) -> list[End]:
    """The ends that are labelled, from lowest to highest.

    >>> [e.y for e in named([End(8, y, f"k = {y % 2}") for y in range(20)])]
    [18, 19]
    """
    upward = sorted(ends, key=lambda e: e.y)
    return upward if len(upward) <= MOST else sorted({e.label: e for e in upward}.values(), key=lambda e: e.y)


def shifts(heights: Sequence[float], least: float = _LINE_PX) -> list[float]:
    """The smallest shifts, in pixels, of labels at these rising heights so that no two are closer than `least`.

    >>> shifts([10, 50, 52])
    [0.0, -5.5, 5.5]
    """
    blocks: list[tuple[float, int]] = []  # the middle of labels that touch, and their number
    for height in heights:
        middle, count = float(height), 1
        while blocks and middle - blocks[-1][0] < least * (count + blocks[-1][1]) / 2:
            below, many = blocks.pop()
            middle, count = (below * many + middle * count) / (many + count), many + count
        blocks.append((middle, count))
    positions = [middle + (i - (count - 1) / 2) * least for middle, count in blocks for i in range(count)]
    return [position - height for position, height in zip(positions, heights, strict=True)]


def _columns(ends: Sequence[End]) -> list[list[End]]:
    """The ends at each x."""
    return [[e for e in ends if e.x == x] for x in sorted({e.x for e in ends})]


def name_ends(draft: Draft, ends: Sequence[End], plot_px: float) -> None:
    """Add the labels to the right of the lines, without overlaps. The axes must be complete (x with a type, y with a range).

    `plot_px`: about how high the plot is without its margins.
    """
    if not ends:
        return
    low, high = draft.y_axis["range"]
    logarithmic = draft.y_axis.get("type") == "log"
    px = plot_px / (high - low)
    logarithmic_x = draft.x_axis.get("type") == "log"
    at = [replace(e, y=math.log10(e.y) if logarithmic else e.y) for e in ends]
    alone = [replace(some[0], y=fmean(e.y for e in some)) for c in _columns(at) for some in merged(c, _LINE_PX / px)]
    chosen = named(alone)
    for column in _columns(chosen):
        for end, shift in zip(column, shifts([(e.y - low) * px for e in column]), strict=True):
            x = math.log10(end.x) if logarithmic_x else end.x
            draft.note(
                end.label, x=x, y=end.y, xref="x", yref="y", xanchor="left", yanchor="middle",
                xshift=_BESIDE_PX, yshift=round(shift, 1), font={"size": 11},
            )  # fmt: skip
    room = _BESIDE_PX + _LETTER_PX * max(len(e.label) for e in chosen)
    draft.layout["margin"] = {**draft.layout["margin"], "r": round(room)}
