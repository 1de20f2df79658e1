"""The variant that a user of `branch_divergence` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def divergence(problem: Problem, card: Card) -> tuple[str, ...]:
    """Threads regrouped so that each warp takes one branch, whatever the number of neighbours (no recorded run).

    >>> from kernelviz.ops.catalog.best import H200
    >>> divergence(Problem(op="branch_divergence", sizes={"n": 16777216, "g": 8}, dtype="fp32"), H200)[0]
    'cuda_regrouped'
    """
    return ("cuda_regrouped",)
