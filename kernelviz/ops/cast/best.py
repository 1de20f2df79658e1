"""The variant that a user of a cast gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def cast(problem: Problem, card: Card) -> tuple[str, ...]:
    """One to four 16-byte vectors a thread by size, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cast(Problem(op="cast_bf16", sizes={"n": 65536}, dtype="fp32"), H200)[0]
    'cuda_adaptive'
    """
    return ("cuda_adaptive", "triton_block")
