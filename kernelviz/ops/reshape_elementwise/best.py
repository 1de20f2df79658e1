"""The variant that a user of `reshape_elementwise` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, is_narrow, whole_vectors
from kernelviz.ops.transpose.best import known_size


def reshaped(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's tiles for the size up to 2^23 elements, in 16 bits 2^21 if narrow or if both sides are whole vectors, and
    for fp32 of at most 512 rows or columns; beyond, one tile for all rows or columns if narrow, Triton's large tiles for 16-bit
    matrices of more rows than columns that are not whole vectors, and else 16-byte vectors of CUDA C++.

    Two tiles that write parts of the same sectors of y are as many tiles apart as Triton has for the columns. H200: 16,028 rows
    of 1726 bf16 take 30.4 us in Triton's large tiles and 33.3 by vectors that span two aligned ones, 1246 rows of 51,296 106.2
    and 68.4.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((64, 8192), (4096, 8192), (8191, 2057), (2, 2**24), (22330, 10), (16, 56), (1246, 51296))
    >>> [reshaped(Problem(op="reshape_elementwise", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['triton_known_size', 'cuda_vec16', 'triton_fused', 'cuda_interleave', 'triton_known_size', 'triton_known_size', \
'cuda_vec16']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if known_size(problem):
        return ("triton_known_size", "cuda_interleave" if is_narrow(problem) else "triton_fused")
    if is_narrow(problem):
        return ("cuda_interleave", "triton_known_size")
    if problem.dtype == "fp32" or m <= n or whole_vectors(problem, "m", "n"):
        return ("cuda_vec16", "triton_fused")
    return ("triton_fused", "cuda_vec16")
