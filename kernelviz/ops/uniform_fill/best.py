"""The variant that a user of `uniform_fill` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def uniform(problem: Problem, card: Card) -> tuple[str, ...]:
    """Philox with all 128 bits of a call used, at every size (no recorded run).

    >>> from kernelviz.ops.catalog.best import H200
    >>> uniform(Problem(op="uniform_fill", sizes={"n": 1048576}, dtype="fp32"), H200)[0]
    'cuda_philox'
    """
    return ("cuda_philox", "triton_philox")
