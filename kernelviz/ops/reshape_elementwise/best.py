"""The variant that a user of `reshape_elementwise` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEW = 2**20
"""H200: 64 × 8192 take 1.9 us in Triton and 2.2 in squares; 256 × 8192 take 3.7 and 3.5."""


def reshaped(problem: Problem, card: Card) -> tuple[str, ...]:
    """Squares of 16-byte vectors that are transposed in registers; Triton up to 2^20 elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [reshaped(Problem(op="reshape_elementwise", sizes={"m": m, "n": 8192}, dtype="bf16"), H200)[0] for m in (64, 256)]
    ['triton_fused', 'cuda_squares']
    """
    few = problem.sizes["m"] * problem.sizes["n"] <= FEW
    return ("triton_fused", "cuda_squares") if few else ("cuda_squares", "triton_fused")
