"""The variant that a user of a gated activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def gated(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's blocks, forward and backward: within 1 % of our fastest in each recorded case.

    >>> from kernelviz.ops.catalog.best import H200
    >>> gated(Problem(op="swiglu", sizes={"m": 8192, "n": 8192}, dtype="bf16"), H200)[0]
    'triton_block'
    """
    return ("triton_block", "cuda_vec16")
