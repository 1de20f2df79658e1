"""The variant that a user of `transpose` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, is_narrow, triton_vectorises, whole_vectors

FEWEST_FP32, FEWEST_16_BITS = 5, 8
"""Rows or columns, below which threads of `cuda_interleave` have an element or vector of each in registers. H200: 3 rows of 1.5
million bf16 take 5.16 us so and 5.51 in torch.compile, 8 of 65,536 1.62 and 1.55."""
FEW_NARROW, FEW_WHOLE, FEW_OTHER = 2**20, 2**21, 2**23
"""Elements of 16-bit matrices that are narrow, that are whole vectors, and others, up to which tiles of 1024 elements for the
size are fastest, as in torch.compile. H200, there: 25 rows of 23,322 fp16 take 1.91 us and 2.53 interleaved, 14 columns of 3.8
million 73.9 and 52.2; 9007 rows of 188 bf16 3.34 and 3.72 in larger tiles, 26,939 of 461 18.9 and 17.9."""
LONGEST_FP32 = 512
"""Rows or columns of fp32 up to which the same holds at any size. H200: 316 rows of 130,918 take 102 us and 113 in larger tiles,
9820 of 6507 162 and 148."""


def known_size(problem: Problem) -> bool:
    """Whether tiles of 1024 elements, compiled for the size, are fastest for a matrix of at least two rows and columns.

    >>> shapes = ((41, 42), (2, 2876), (70, 91_963), (14, 2**22), (4096, 4096))
    >>> problems = [Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16") for m, n in shapes]
    >>> [known_size(problem) for problem in problems]
    [True, False, True, False, False]
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if min(m, n) < (FEWEST_FP32 if problem.dtype == "fp32" else FEWEST_16_BITS):
        return False
    if problem.dtype == "fp32":
        return min(m, n) <= LONGEST_FP32 or m * n <= FEW_OTHER
    if is_narrow(problem):
        return m * n <= FEW_NARROW
    return m * n <= (FEW_WHOLE if whole_vectors(problem, "m", "n") else FEW_OTHER)


def transpose(problem: Problem, card: Card) -> tuple[str, ...]:
    """One tile for all of fewer than 8 rows or columns, of fp32 than 5, and a copy of one; else Triton's tiles for the size up to
    2^23 elements, 2^21 if both sides are whole vectors, 2^20 if narrow, and for fp32 of at most 512 rows or columns; beyond, one
    tile for all rows or columns if narrow, else Triton's large tiles where both sides are multiples of 16, and else 16-byte
    vectors of CUDA C++.

    Triton loads rows of another length in pieces.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((5000, 3000), (2, 2**24), (2**20, 10), (4097, 8191), (2, 3), (23, 394), (1, 2**20))
    >>> [transpose(Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_vec16', 'cuda_interleave', 'cuda_interleave', 'cuda_vec16', 'cuda_interleave', 'triton_known_size', 'cuda_interleave']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if known_size(problem):
        return ("triton_known_size", "triton_tile")
    if is_narrow(problem) or min(m, n) < FEWEST_16_BITS:
        return ("cuda_interleave", "triton_known_size")
    return (
        ("triton_tile", "cuda_vec16")
        if triton_vectorises(m) and triton_vectorises(n)
        else ("cuda_vec16", "triton_tile")
    )
