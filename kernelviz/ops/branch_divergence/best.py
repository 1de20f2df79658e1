"""The variant that a user of `branch_divergence` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

WARP = 32


def divergence(problem: Problem, card: Card) -> tuple[str, ...]:
    """Threads regrouped so that each warp takes one branch; the plain branch where neighbours are whole warps.

    Whole warps do not diverge. H200: 49,871 elements in groups of 2 take 2.07 us regrouped, 2.71 by the plain branch and 2.46
    with both branches and a selection; 27,430 in groups of 16 take 1.92, 2.54 and 2.06; 135,511 in groups of 128 take 2.96,
    2.93 and 3.96.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**24, 8), (2**24, 64), (2**14, 8))
    >>> [divergence(Problem(op="branch_divergence", sizes={"n": n, "g": g}, dtype="fp32"), H200)[0] for n, g in cases]
    ['cuda_regrouped', 'cuda_divergent', 'cuda_regrouped']
    """
    if problem.sizes["g"] % WARP == 0:
        return ("cuda_divergent", "cuda_regrouped")
    return ("cuda_regrouped", "triton_select")
