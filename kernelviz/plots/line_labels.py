"""Words behind the last point of lines: which of several lines of one colour is which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from kernelviz.plots.frame import Draft

MOST = 12
"""More lines than that are not named one by one: of each group the one whose end is highest."""
_LINE_PX = 13
_LETTER_PX = 6.5
_BESIDE_PX = 8


@dataclass(frozen=True, slots=True)
class End:
    """Where a line ends, in the units of the axes, and what tells its group apart (``k = 8``)."""

    x: float
    y: float
    words: str


def merged(ends: Sequence[End], least: float) -> list[list[End]]:
    """The ends from the lowest up, neighbours with the same words that are closer than `least` as one.

    >>> [[e.y for e in some] for some in merged([End(8, y, words) for y, words in ((1, "a"), (3, "a"), (4, "b"), (9, "a"))], 5)]
    [[1, 3], [4], [9]]
    """
    found: list[list[End]] = []
    for end in sorted(ends, key=lambda e: e.y):
        if found and found[-1][-1].words == end.words and end.y - found[-1][-1].y < least:
            found[-1].append(end)
        else:
            found.append([end])
    return found


def named(ends: Sequence[End]) -> list[End]:
    """The ends that get words, from the lowest up.

    >>> [e.y for e in named([End(8, y, f"k = {y % 2}") for y in range(20)])]
    [18, 19]
    """
    upward = sorted(ends, key=lambda e: e.y)
    if len(upward) <= MOST:
        return upward
    return sorted({e.words: e for e in upward}.values(), key=lambda e: e.y)


def shifts(heights: Sequence[float], least: float = _LINE_PX) -> list[float]:
    """By how many pixels words at these heights (rising) move so that no two are closer than `least`, as little as that takes.

    >>> shifts([10, 50, 52])
    [0.0, -5.5, 5.5]
    """
    blocks: list[tuple[float, int]] = []  # the middle of words that touch, and how many they are
    for height in heights:
        middle, count = float(height), 1
        while blocks and middle - blocks[-1][0] < least * (count + blocks[-1][1]) / 2:
            below, many = blocks.pop()
            middle, count = (below * many + middle * count) / (many + count), many + count
        blocks.append((middle, count))
    places = [middle + (i - (count - 1) / 2) * least for middle, count in blocks for i in range(count)]
    return [place - height for place, height in zip(places, heights, strict=True)]


def name_ends(draft: Draft, ends: Sequence[End], plot_px: float) -> None:
    """Write them right of the lines of a draft whose axes are finished (x logarithmic, y with its range), apart from each other.

    `plot_px`: about how high the plot is without its margins.
    """
    if not ends:
        return
    low, high = draft.y_axis["range"]
    logarithmic = draft.y_axis.get("type") == "log"
    px = plot_px / (high - low)
    at = [replace(e, y=math.log10(e.y) if logarithmic else e.y) for e in ends]
    columns = [[e for e in at if e.x == x] for x in sorted({e.x for e in at})]
    alone = [replace(some[0], y=fmean(e.y for e in some)) for c in columns for some in merged(c, _LINE_PX / px)]
    chosen = named(alone)
    for x in sorted({e.x for e in chosen}):
        column = [e for e in chosen if e.x == x]
        for end, shift in zip(column, shifts([(e.y - low) * px for e in column]), strict=True):
            draft.note(
                end.words, x=math.log10(x), y=end.y, xref="x", yref="y", xanchor="left", yanchor="middle",
                xshift=_BESIDE_PX, yshift=round(shift, 1), font={"size": 11},
            )  # fmt: skip
    room = _BESIDE_PX + _LETTER_PX * max(len(e.words) for e in chosen)
    draft.layout["margin"] = {**draft.layout["margin"], "r": round(room)}
