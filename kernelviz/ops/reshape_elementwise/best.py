"""The variant that a user of `reshape_elementwise` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, is_narrow, whole_vectors
from kernelviz.ops.transpose.best import FEWEST_16_BITS, known_size

FEW_OF_ONE = 2**16
"""H200: relu of 18,381 fp16 takes 1.21 us in torch.compile and 1.31 with an element a thread of CUDA C++."""


def reshaped(problem: Problem, card: Card) -> tuple[str, ...]:
    """One tile for all of fewer than 8 rows or columns, of fp32 than 5, and relu alone of one; else, and for one of up to 2^16
    elements, Triton's tiles for the size up to 2^23 elements, 2^21 if both sides are whole vectors, 2^20 if narrow, and for fp32
    of at most 512 rows or columns; beyond, one tile for all rows or columns if narrow, else 16-byte vectors of CUDA C++ for fp32
    and where rows of x and y are whole vectors, and else Triton's large tiles.

    H200: 16,028 rows of 1726 bf16 take 30.4 us in Triton's large tiles and 33.3 by vectors that span two aligned ones.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((64, 8192), (4096, 8192), (2057, 8191), (2, 2**24), (22330, 10), (16, 56), (1, 1))
    >>> [reshaped(Problem(op="reshape_elementwise", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['triton_known_size', 'cuda_vec16', 'triton_fused', 'cuda_interleave', 'triton_known_size', 'triton_known_size', \
'triton_known_size']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if known_size(problem) or (min(m, n) == 1 and m * n <= FEW_OF_ONE):
        return ("triton_known_size", "triton_fused")
    if is_narrow(problem) or min(m, n) < FEWEST_16_BITS:
        return ("cuda_interleave", "triton_known_size")
    if problem.dtype == "fp32" or whole_vectors(problem, "m", "n"):
        return ("cuda_vec16", "triton_fused")
    return ("triton_fused", "cuda_vec16")
