"""The variant that a user of `dropout` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEW = 2**17
"""H200: 2^16 elements take 1.9 us in triton_rand and 2.2 in cuda_philox; 2^27 take 403 and 125. Lines through these
times meet near 2^17."""


def dropout(problem: Problem, card: Card) -> tuple[str, ...]:
    """Philox of CUDA C++, which uses all 128 bits of a call; Triton's generator for at most 2^17 elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [dropout(Problem(op="dropout", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (65536, 1048576)]
    ['triton_rand', 'cuda_philox']
    """
    return ("triton_rand", "cuda_philox") if problem.sizes["n"] <= FEW else ("cuda_philox", "triton_philox")
