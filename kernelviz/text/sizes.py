"""Sizes of problems as people read them."""

import itertools
from collections.abc import Sequence

from kernelviz.core import Problem
from kernelviz.core.units import power_of_two

_SUPERSCRIPTS = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")


def format_size(size: int) -> str:
    """One size: a power of two with its exponent, another number with separators.

    >>> format_size(4096), format_size(1000)
    ('2¹²', '1,000')
    """
    base, _, exponent = power_of_two(size).partition("^")
    return base + exponent.translate(_SUPERSCRIPTS)


def format_sizes(problem: Problem, axes: Sequence[str] | None = None) -> str:
    """The sizes of all axes or of the given ones; neighbouring axes of the same size are written together.

    >>> format_sizes(Problem(op="rmsnorm", sizes={"m": 4096, "n": 1000}, dtype="fp32"))
    'm = 2¹², n = 1,000'
    >>> format_sizes(Problem(op="matmul", sizes={"m": 512, "n": 512, "k": 64}, dtype="fp32"))
    'm = n = 512, k = 64'
    """
    chosen = problem.sizes if axes is None else {a: problem.sizes[a] for a in axes if a in problem.sizes}
    groups = itertools.groupby(chosen, key=chosen.__getitem__)
    return ", ".join(f"{' = '.join(group)} = {format_size(size)}" for size, group in groups)


def format_problem(problem: Problem) -> str:
    """Op, number format and sizes; the direction only if it is backward.

    >>> format_problem(Problem(op="softmax", sizes={"m": 3, "n": 7}, dtype="bf16", direction="backward"))
    'softmax bf16 m = 3, n = 7, backward'
    """
    text = " ".join(part for part in (problem.op, problem.precision, format_sizes(problem)) if part)
    return f"{text}, backward" if problem.direction == "backward" else text
