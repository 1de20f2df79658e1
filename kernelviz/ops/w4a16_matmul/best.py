"""The variant that a user of `w4a16_matmul` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MANY_ROWS = 192
"""Where the times of triton_fused (81 us at 64 rows of 28672 × 4096, 463 at 512, H200) and triton_dequantise (142, 233) meet."""
MANY_FEATURES = 16384
"""H200, one row: 8192 features take 12.5 us in cuda_mma and 13.3 in cuda_bulk_integers; 28672 take 20.7 and 17.4."""


def w4a16(problem: Problem, card: Card) -> tuple[str, ...]:
    """For one row, streams of weights with products of integers from 16384 features on, else tensor cores; for 2 to 8 rows,
    streams of weights; then tensor cores up to 16 rows, Triton's fused kernel up to 192, and weights converted to 16 bits
    first beyond.

    It never names `cuda_mma_shuffled`, which reorders the weights outside of the call.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((1, 8192), (1, 28672), (8, 8192), (16, 8192), (64, 8192), (512, 28672))
    >>> [w4a16(Problem(op="w4a16_matmul", sizes={"m": m, "n": n, "k": 4096}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['cuda_mma', 'cuda_bulk_integers', 'cuda_bulk', 'cuda_mma', 'triton_fused', 'triton_dequantise']
    """
    rows = problem.sizes["m"]
    if rows > MANY_ROWS:
        return ("triton_dequantise",)
    if rows > 16:
        return ("triton_fused",)
    if rows == 1 and problem.sizes["n"] >= MANY_FEATURES:
        return ("cuda_bulk_integers", "cuda_mma", "triton_fused")
    if 1 < rows <= 8:
        return ("cuda_bulk", "cuda_mma", "triton_fused")
    return ("cuda_mma", "triton_fused")
