"""The variant that a user of `reshape_elementwise` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card
from kernelviz.ops.transpose.best import is_narrow

FEW_ELEMENTS = 2**22
"""Up to which tiles of 1024 elements, compiled for the size, are chosen."""


def reshaped(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's tiles for the size up to 2^22 elements; beyond them one tile of all rows or columns if these are at most 64, else
    16-byte vectors of CUDA C++.

    H200: 1246 rows of 51,296 bf16 take 68.4 us by vectors and 106.2 in Triton's large tiles; 16,028 of 1726, of which two tiles
    that write parts of the same sectors of y are far apart, 33.3 and 30.4. 2048 of 2048 fp32 take 8.63 by vectors and 8.28 in
    Triton's tiles.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((64, 8192), (2048, 2048), (2, 2**24), (4096, 8192))
    >>> [reshaped(Problem(op="reshape_elementwise", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['triton_known_size', 'triton_known_size', 'cuda_interleave', 'cuda_vec16']
    """
    if problem.sizes["m"] * problem.sizes["n"] <= FEW_ELEMENTS:
        return ("triton_known_size", "cuda_interleave", "triton_fused", "cuda_vec16", "cuda_squares")
    if is_narrow(problem):
        return ("cuda_interleave", "triton_known_size", "cuda_vec16", "triton_fused", "cuda_registers")
    return ("cuda_vec16", "triton_fused", "triton_known_size", "cuda_interleave", "cuda_squares")
