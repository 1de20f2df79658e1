"""The variant that a user of an activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def activation(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's blocks, at every size: as fast as any of ours in each recorded case.

    >>> from kernelviz.ops.catalog.best import H200
    >>> activation(Problem(op="gelu", sizes={"n": 134217728}, dtype="bf16"), H200)[0]
    'triton_block'
    """
    return ("triton_block", "cuda_vec16")
