"""Sizes of problems as people read them: with all digits, the same in every chart, table and sentence.

Commands and fields have them as a person types them, see `kernelviz.core.units.typed_size`.
"""

import itertools
from collections.abc import Sequence

from kernelviz.core import Problem


def format_size(size: int) -> str:
    """One size, with separators.

    >>> format_size(4096), format_size(64)
    ('4,096', '64')
    """
    return f"{size:,}"


def format_sizes(problem: Problem, axes: Sequence[str] | None = None) -> str:
    """The sizes of all axes or of the given ones; neighbouring axes of the same size are written together.

    >>> format_sizes(Problem(op="rmsnorm", sizes={"m": 4096, "n": 1000}, dtype="fp32"))
    'm = 4,096, n = 1,000'
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
