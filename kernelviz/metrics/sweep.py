"""The structure of a set of problems: which axis was swept, which sizes stayed the same, and where the data fills the cache."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Problem


@dataclass(frozen=True, slots=True)
class Point:
    """A size on the swept axis and the minimal bytes that its problem moves."""

    size: int
    moved_bytes: int


def varying_axes(problems: Sequence[Problem]) -> tuple[str, ...]:
    """Axes with more than one size, in the op's order.

    >>> p = [Problem(op="rmsnorm", sizes={"m": 8, "n": n}, dtype="fp32") for n in (64, 128)]
    >>> varying_axes(p)
    ('n',)
    """
    axes = problems[0].sizes if problems else {}
    return tuple(a for a in axes if len({p.sizes[a] for p in problems if a in p.sizes}) > 1)


def swept_axis(problems: Sequence[Problem]) -> str | None:
    """The x-axis of charts: the axis with the most distinct sizes, then one that grows in the order of the plan.

    >>> swept_axis([Problem(op="rmsnorm", sizes={"m": 2**20 // n, "n": n}, dtype="fp32") for n in (64, 128)])
    'n'
    """
    axes = list(problems[0].sizes) if problems else []

    def rank(axis: str) -> tuple[int, bool]:
        sizes = [p.sizes[axis] for p in problems if axis in p.sizes]
        return len(set(sizes)), sizes == sorted(sizes)

    if not varying_axes(problems):
        return axes[-1] if axes else None
    return max(axes, key=rank)  # the first of equal ones


def tied_axes(problems: Sequence[Problem], axis: str) -> tuple[str, ...]:
    """The axes that have the same size as `axis` in every problem, itself included (square matrices: m, n and k).

    >>> tied_axes([Problem(op="matmul", sizes={"m": s, "n": s, "k": 8}, dtype="fp32") for s in (64, 128)], "m")
    ('m', 'n')
    """
    axes = problems[0].sizes if problems else {}
    return tuple(a for a in axes if all(p.sizes.get(a) == p.sizes.get(axis) for p in problems))


def line_sizes(problem: Problem, problems: Sequence[Problem], axis: str) -> tuple[tuple[str, int], ...]:
    """The sizes that distinguish the lines of a chart: of the varying axes that are not a function of `axis`.

    >>> grid = [Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="fp32") for m in (1, 2) for n in (64, 128)]
    >>> line_sizes(grid[0], grid, "n")
    (('m', 1),)
    >>> line_sizes(grid[0], grid[:2], "n")
    ()
    """
    return tuple((a, problem.sizes[a]) for a in line_axes(problems, axis))


def line_axes(problems: Sequence[Problem], axis: str) -> tuple[str, ...]:
    """The varying axes that are not a function of `axis`: their sizes distinguish the lines of a chart.

    >>> line_axes([Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="fp32") for m in (1, 2) for n in (64, 128)], "n")
    ('m',)
    """
    sizes = len({p.sizes.get(axis) for p in problems})
    return tuple(a for a in varying_axes(problems) if len({(p.sizes.get(axis), p.sizes[a]) for p in problems}) > sizes)


def companion_axes(problems: Sequence[Problem], axis: str) -> tuple[str, ...]:
    """The varying axes whose size follows from that of `axis` and differs from it (a smaller image with more channels).

    >>> companion_axes([Problem(op="rmsnorm", sizes={"m": 2**20 // n, "n": n}, dtype="fp32") for n in (64, 128)], "n")
    ('m',)
    """
    independent = {*tied_axes(problems, axis), *line_axes(problems, axis)}
    return tuple(a for a in varying_axes(problems) if a not in independent)


def telling_axes(problems: Sequence[Problem]) -> tuple[str, ...]:
    """The axes that distinguish the problems of a plan: the swept one, those tied to it, and all other free axes.

    >>> telling_axes([Problem(op="rmsnorm", sizes={"m": 2**20 // n, "n": n}, dtype="fp32") for n in (64, 128)])
    ('n',)
    """
    axis = swept_axis(problems)
    if axis is None:
        return ()
    telling = {*tied_axes(problems, axis), *dict(line_sizes(problems[0], problems, axis))}
    return tuple(a for a in problems[0].sizes if a in telling)


def cache_boundary(points: Sequence[Point], cache_bytes: int | None) -> float | None:
    """The size at which the moved bytes fill the cache, interpolated in logarithms; None when no size is on each side.

    >>> cache_boundary([Point(1024, 1024), Point(4096, 4096)], 2048)
    2048.0
    """
    if not cache_bytes:
        return None
    ordered = sorted(set(points), key=lambda p: p.size)
    for low, high in itertools.pairwise(ordered):
        if low.size and 0 < low.moved_bytes < cache_bytes <= high.moved_bytes:
            share = math.log(cache_bytes / low.moved_bytes) / math.log(high.moved_bytes / low.moved_bytes)
            return round(math.exp(math.log(low.size) + share * math.log(high.size / low.size)), 6)
    return None
