"""The variant that a user of `reshape_elementwise` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import NARROW, Card, is_narrow, whole_vectors

FEW = 2**20
"""H200: 64 × 8192 take 1.9 us in Triton and 2.2 in squares; 256 × 8192 take 3.7 and 3.5."""


def reshaped(problem: Problem, card: Card) -> tuple[str, ...]:
    """Squares of 16-byte vectors, or vectors that span two aligned ones; one tile for all rows or columns if there are few;
    Triton up to 2^20 elements, except for at most 16 rows that are no more than the columns.

    H200: 16 rows of 56 fp16 take 1.27 us in registers of `cuda_interleave` and 1.31 in Triton; one element
    takes 1.15 in Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((64, 8192), (256, 8192), (257, 8191), (2, 2**24), (22330, 10), (16, 56), (1, 1))
    >>> [reshaped(Problem(op="reshape_elementwise", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['triton_fused', 'cuda_squares', 'cuda_vec16', 'cuda_interleave', 'cuda_interleave', 'cuda_interleave', \
'cuda_interleave']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    few_rows = m <= min(n, NARROW)
    if is_narrow(problem) or few_rows:
        return ("cuda_interleave", "triton_fused")
    if m * n <= FEW:
        return ("triton_fused", "cuda_squares")
    return ("cuda_squares" if whole_vectors(problem, "m", "n") else "cuda_vec16", "triton_fused")
