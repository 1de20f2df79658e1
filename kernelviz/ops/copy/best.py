"""The variant that a user of a copy gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def copy(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's blocks, at every size: as fast as any of ours in each recorded case.

    >>> from kernelviz.ops.catalog.best import H200
    >>> copy(Problem(op="copy", sizes={"n": 1048576}, dtype="fp32"), H200)[0]
    'triton_block'
    """
    return ("triton_block", "cuda_adaptive")


def strided(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel that chooses its loads by the stride, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> strided(Problem(op="strided_copy", sizes={"n": 67108864, "s": 8}, dtype="fp32"), H200)[0]
    'cuda_adaptive'
    """
    return ("cuda_adaptive", "cuda_unrolled")
