"""The variant that a user of `add`, `mul` or `div` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def elementwise(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's blocks, at every size: within 4 % of our fastest in each recorded case.

    >>> from kernelviz.ops.catalog.best import H200
    >>> elementwise(Problem(op="add", sizes={"n": 1048576}, dtype="fp32"), H200)[0]
    'triton_block'
    """
    return ("triton_block", "cuda_adaptive")
