"""The order in a set of problems: which axis was swept, what stayed the same, where the caches end."""

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernelviz.core import Problem
from kernelviz.core.units import power_of_two


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
    """The axis to draw against: most distinct sizes, then the one that grows in the order of the plan; None of none.

    >>> swept_axis([Problem(op="rmsnorm", sizes={"m": 2**20 // n, "n": n}, dtype="fp32") for n in (64, 128)])
    'n'
    """
    if not problems:
        return None
    axes = list(problems[0].sizes)

    def rank(axis: str) -> tuple[int, bool, int]:
        sizes = [p.sizes[axis] for p in problems if axis in p.sizes]
        return len(set(sizes)), sizes == sorted(sizes), -axes.index(axis)

    if not varying_axes(problems):
        return axes[-1] if axes else None
    return max(axes, key=rank)


def tied_axes(problems: Sequence[Problem], axis: str) -> tuple[str, ...]:
    """The axes that have the same size as `axis` in every problem, itself included (square matrices: m, n and k).

    >>> tied_axes([Problem(op="matmul", sizes={"m": s, "n": s, "k": 8}, dtype="fp32") for s in (64, 128)], "m")
    ('m', 'n')
    """
    axes = problems[0].sizes if problems else {}
    return tuple(a for a in axes if all(p.sizes.get(a) == p.sizes.get(axis) for p in problems))


def others(problem: Problem, problems: Sequence[Problem], axis: str) -> tuple[tuple[str, int], ...]:
    """The sizes that tell the lines of a chart apart: varying axes that `axis` does not decide.

    >>> grid = [Problem(op="rmsnorm", sizes={"m": m, "n": n}, dtype="fp32") for m in (1, 2) for n in (64, 128)]
    >>> others(grid[0], grid, "n")
    (('m', 1),)
    >>> others(grid[0], grid[:2], "n")
    ()
    """
    free = [a for a in varying_axes(problems) if a != axis and not _decides(problems, axis, a)]
    return tuple((a, problem.sizes[a]) for a in free)


def _decides(problems: Sequence[Problem], axis: str, other: str) -> bool:
    seen: dict[int, int] = {}
    return all(seen.setdefault(p.sizes[axis], p.sizes[other]) == p.sizes[other] for p in problems)


_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def size_text(size: int) -> str:
    """One size as one reads it.

    >>> size_text(4096), size_text(1000)
    ('2¹²', '1,000')
    """
    base, _, exponent = power_of_two(size).partition("^")
    return base + exponent.translate(_RAISED)


def size_words(problem: Problem, axes: Sequence[str] | None = None) -> str:
    """The sizes as one reads them, all axes or the given ones; neighbours of one size share it.

    >>> size_words(Problem(op="rmsnorm", sizes={"m": 4096, "n": 1000}, dtype="fp32"))
    'm = 2¹², n = 1,000'
    >>> size_words(Problem(op="matmul", sizes={"m": 512, "n": 512, "k": 64}, dtype="fp32"))
    'm = n = 512, k = 64'
    """
    chosen = problem.sizes if axes is None else {a: problem.sizes[a] for a in axes if a in problem.sizes}
    groups = itertools.groupby(chosen.items(), key=lambda item: item[1])
    return ", ".join(f"{' = '.join(axis for axis, _ in group)} = {size_text(size)}" for size, group in groups)


def telling_axes(problems: Sequence[Problem]) -> tuple[str, ...]:
    """The axes that tell the problems of a plan apart: the swept one with those tied to it, and any that is free beside it.

    >>> telling_axes([Problem(op="rmsnorm", sizes={"m": 2**20 // n, "n": n}, dtype="fp32") for n in (64, 128)])
    ('n',)
    """
    axis = swept_axis(problems)
    if axis is None:
        return ()
    wanted = {*tied_axes(problems, axis), *(a for a, _ in others(problems[0], problems, axis))}
    return tuple(a for a in problems[0].sizes if a in wanted)


def cache_boundary(points: Sequence[Point], cache_bytes: int | None) -> float | None:
    """The size at which the moved bytes fill the cache, interpolated in logarithms; None when no size is on each side.

    >>> cache_boundary([Point(1024, 1024), Point(4096, 4096)], 2048)
    2048.0
    """
    if not cache_bytes:
        return None
    ordered = sorted(set(points), key=lambda p: p.size)
    for low, high in itertools.pairwise(ordered):
        if 0 < low.moved_bytes < cache_bytes <= high.moved_bytes:
            share = math.log(cache_bytes / low.moved_bytes) / math.log(high.moved_bytes / low.moved_bytes)
            return round(math.exp(math.log(low.size) + share * math.log(high.size / low.size)), 6)
    return None


def problem_words(problem: Problem) -> str:
    """Op, number format, sizes, and the direction where it is not the usual one.

    >>> problem_words(Problem(op="softmax", sizes={"m": 3, "n": 7}, dtype="bf16", direction="backward"))
    'softmax bf16 m = 3, n = 7, backward'
    """
    words = " ".join(part for part in (problem.op, problem.precision, size_words(problem)) if part)
    return f"{words}, backward" if problem.direction == "backward" else words
