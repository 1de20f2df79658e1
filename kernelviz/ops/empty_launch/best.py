"""The variant that a user of `empty_launch` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEW = 8
"""The largest number for which a graph was as fast. From 9 to 12 nothing was measured."""


def launches(problem: Problem, card: Card) -> tuple[str, ...]:
    """A captured graph of up to 8 launches of a CUDA C++ kernel, and separate launches of more.

    H200: 1 takes 0.74 us in a graph and 0.75 apart, 8 take 7.40 and 7.75, 13 take 12.7 and 11.8, 64 take 61 and 54.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [launches(Problem(op="empty_launch", sizes={"k": k}, dtype="fp32"), H200)[0] for k in (8, 64)]
    ['cuda_graph', 'cuda_launches']
    """
    return ("cuda_graph", "cuda_launches") if problem.sizes["k"] <= FEW else ("cuda_launches",)
