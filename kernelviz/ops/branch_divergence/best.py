"""The variant that a user of `branch_divergence` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor

WARP = 32


def divergence(problem: Problem, card: Card) -> tuple[str, ...]:
    """Threads regrouped so that each warp takes one branch; the plain branch where neighbours are whole warps, and both
    branches with a selection up to 256 elements a multiprocessor.

    Whole warps do not diverge. With one block a multiprocessor nothing hides the barrier of the exchange.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**24, 8), (2**24, 64), (2**14, 8))
    >>> [divergence(Problem(op="branch_divergence", sizes={"n": n, "g": g}, dtype="fp32"), H200)[0] for n, g in cases]
    ['cuda_regrouped', 'cuda_divergent', 'triton_select']
    """
    if problem.sizes["g"] % WARP == 0:
        return ("cuda_divergent", "cuda_regrouped")
    if elements_a_multiprocessor(problem.sizes["n"], card) <= 256:
        return ("triton_select", "cuda_regrouped")
    return ("cuda_regrouped",)
