"""How many rows each group has, or positions each sequence: uneven, and the same for every seed. Imports no torch."""

from __future__ import annotations

import math
from itertools import accumulate, pairwise

from kernelviz.ops.catalog.tensors import Sizes

_MOST_STEEP = 64
"""From this `s` on the sizes of the groups are the same."""


def group_ends(groups: int, rows: int, s: int) -> tuple[int, ...]:
    """The row after the last one of each group, where a group has `rows` rows on average and the largest about `s` times as many
    (with s near the number of groups, 0.7 times that).

    The groups have sizes in proportion to 0, 1, … groups - 1, each to the power s - 1, in an order in which large and small ones
    alternate. So with s = 1 all have as many rows, and else at least one has none.

    >>> group_ends(4, 100, 1), group_ends(4, 100, 2)
    ((100, 200, 300, 400), (133, 200, 200, 400))
    """
    order = ((i * _step(groups) + groups // 2) % groups for i in range(groups))
    power = min(s, groups, _MOST_STEEP) - 1
    sums = tuple(accumulate(rank**power for rank in order))
    return tuple(groups * rows * part // sums[-1] for part in sums)


def ends(sizes: Sizes) -> tuple[int, ...]:
    """`group_ends` of the axes g, m and s."""
    return group_ends(sizes["g"], sizes["m"], sizes["s"])


def groups_with_rows(sizes: Sizes) -> int:
    """
    >>> groups_with_rows({"g": 4, "m": 100, "s": 1}), groups_with_rows({"g": 4, "m": 100, "s": 2})
    (4, 3)
    """
    return len({0, *ends(sizes)}) - 1


def most_rows(sizes: Sizes) -> int:
    """The rows of the largest group.

    >>> most_rows({"g": 4, "m": 100, "s": 2})
    200
    """
    return max(after - before for before, after in pairwise((0, *ends(sizes))))


def _step(groups: int) -> int:
    """A step that visits every group once, near the golden section, so that neighbours differ in size."""
    return next(step for step in range(round(groups * 0.618), 2 * groups + 2) if math.gcd(step, groups) == 1)
