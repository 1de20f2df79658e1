"""The variant that a user of `branch_divergence` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

WARP = 32


def divergence(problem: Problem, card: Card) -> tuple[str, ...]:
    """Threads regrouped so that each warp takes one branch; the plain branch where neighbours are whole warps.

    Whole warps do not diverge. H200: 584 elements in groups of 4 take 1.61 us regrouped and 1.79 with both branches and a
    selection, 16,384 in groups of 2 take 1.96 and 2.27; these figures are of kernels that did not know the length of a group.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((2**24, 8), (2**24, 64), (2**14, 8))
    >>> [divergence(Problem(op="branch_divergence", sizes={"n": n, "g": g}, dtype="fp32"), H200)[0] for n, g in cases]
    ['cuda_regrouped', 'cuda_divergent', 'cuda_regrouped']
    """
    if problem.sizes["g"] % WARP == 0:
        return ("cuda_divergent", "cuda_regrouped")
    return ("cuda_regrouped", "triton_select")
