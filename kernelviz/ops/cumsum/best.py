"""The variant that a user of `cumsum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def scan(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass with decoupled look-back, at every size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> scan(Problem(op="cumsum", sizes={"n": 65536}, dtype="fp32"), H200)[0]
    'cuda_look_back'
    """
    return ("cuda_look_back", "triton_three_kernels")
