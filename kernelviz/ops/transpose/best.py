"""The variant that a user of `transpose` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, is_narrow, triton_vectorises

WARP = 32


def transpose(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's tiles; one tile for all rows or columns if there are few, also for up to 32 elements; 16-byte vectors of CUDA C++
    for more than 2^20 elements where a side is no multiple of 16, which Triton loads in pieces or cuts.

    The registers that `cuda_interleave` uses for up to 32 elements are an estimate; H200: 2 rows of 3 take 1.31 us in Triton.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((5000, 3000), (2, 2**24), (2**20, 10), (4097, 8191), (2, 3))
    >>> [transpose(Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_vec16', 'cuda_interleave', 'cuda_interleave', 'cuda_vec16', 'cuda_interleave']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if is_narrow(problem) or m * n <= WARP:
        return ("cuda_interleave", "triton_tile")
    pieces = not (triton_vectorises(m) and triton_vectorises(n)) and m * n > 2**20
    return ("cuda_vec16", "triton_tile") if pieces else ("triton_tile", "cuda_vec16")
