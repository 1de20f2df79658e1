"""The variant that a user of `transpose` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, triton_vectorises, whole_vectors

NARROW, FEW = 16, 2**14
"""Rows or columns of a narrow matrix, and elements of one that is too small for its kernel to gain anything: estimates. H200: 3
rows of 5 million take 14 us as one tile and 19 in Triton's; of reshape_elementwise, 66 rows of 16 take 1.4 and 1.2."""
LONG_NARROW = 64
"""Rows or columns up to which the same holds where rows of x or of y are not whole 16-byte vectors."""


def is_narrow(problem: Problem) -> bool:
    """Whether a tile of 64 × 64 elements would be mostly outside the matrix, or a row of it would be in pieces.

    >>> [is_narrow(Problem(op="transpose", sizes={"m": m, "n": 2**20}, dtype="bf16")) for m in (2, 16, 37, 64, 100)]
    [True, True, True, False, False]
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    most = NARROW if whole_vectors(problem, "m", "n") else LONG_NARROW
    return min(m, n) <= most and m * n > FEW and max(m, n) * dtype_named(problem.dtype).itemsize_bytes >= 16


def transpose(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's tiles; one tile for all rows or columns if there are few; 16-byte vectors of CUDA C++ for more than 2^20 elements
    where a side is no multiple of 16, which Triton loads in pieces or cuts.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((5000, 3000), (2, 2**24), (2**20, 10), (4097, 8191))
    >>> [transpose(Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_vec16', 'cuda_interleave', 'cuda_interleave', 'cuda_vec16']
    """
    if is_narrow(problem):
        return ("cuda_interleave", "triton_tile")
    m, n = problem.sizes["m"], problem.sizes["n"]
    pieces = not (triton_vectorises(m) and triton_vectorises(n)) and m * n > 2**20
    return ("cuda_vec16", "triton_tile") if pieces else ("triton_tile", "cuda_vec16")
