"""The variant that a user of `empty_launch` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card


def launches(problem: Problem, card: Card) -> tuple[str, ...]:
    """Separate launches of a CUDA C++ kernel.

    A captured graph is slower from 4 launches on, but for 8 in an earlier run. H200: 1 takes 0.74 us in a graph and apart, 4 take
    3.87 and 3.17, 8 took 7.40 and 7.75, 16 take 15.5 and 13.7, 64 61 and 57.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [launches(Problem(op="empty_launch", sizes={"k": k}, dtype="fp32"), H200)[0] for k in (8, 64)]
    ['cuda_launches', 'cuda_launches']
    """
    return ("cuda_launches", "cuda_graph")
