"""The variant that a user of `transpose` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, is_narrow, triton_vectorises, whole_vectors

FEW, FEW_OTHER = 2**21, 2**23
"""Elements of 16-bit matrices that are narrow or whole vectors, and of others, up to which tiles of 1024 elements for the size
are fastest. H200: 4 rows of 2048 bf16 take 1.04 us and 1.15 interleaved, 28 of 17,775 1.64 and 2.29, 7 of 167,317 fp16 2.21 and
2.66, but 3 columns of 2,955,741 10.4 and 9.07, and 4 of 796,801 with relu 5.17 and 4.20; 512 columns of 4096 fp16 2.78 us and
3.01 in larger tiles."""
LONGEST_FP32 = 512
"""Rows or columns of fp32 up to which the same holds at any size. H200: 2 rows of 1,048,576 with relu take 4.64 us and 4.89
interleaved, 4 of 7,610,635 56.0 and 58.1; 94,112 of 128 21.8 and 22.1 by vectors, but 11,587 of 1012 33.6 and 23.7."""
FEWEST_OF_TILE = 4
"""Rows or columns of Triton's narrowest large tile."""


def known_size(problem: Problem) -> bool:
    """Whether tiles of 1024 elements, compiled for the size, are fastest.

    >>> shapes = ((41, 42), (2, 2876), (2, 2**21), (70, 91_963), (14, 2**22), (4096, 4096))
    >>> problems = [Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16") for m, n in shapes]
    >>> [known_size(problem) for problem in problems]
    [True, True, False, True, False, False]
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if problem.dtype == "fp32":
        return min(m, n) <= LONGEST_FP32 or m * n <= FEW_OTHER
    return m * n <= (FEW if is_narrow(problem) or whole_vectors(problem, "m", "n") else FEW_OTHER)


def _fills_tile(problem: Problem) -> bool:
    """Whether a narrow matrix fills Triton's large tiles, which have a power of two of rows and columns."""
    shorter, longer = sorted((problem.sizes["m"], problem.sizes["n"]))
    return shorter >= FEWEST_OF_TILE and shorter.bit_count() == 1 and triton_vectorises(longer)


def transpose(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's tiles for the size up to 2^23 elements, in 16 bits 2^21 if narrow or if both sides are whole vectors, and
    for fp32 of at most 512 rows or columns; beyond, Triton's large tiles where both sides are multiples of 16, or one is and the
    other is 4 or 8, one tile for all rows or columns of others that are narrow, and else 16-byte vectors of CUDA C++.

    Triton loads rows of another length in pieces. H200: 8 columns of 305,232 bf16 take 3.22 us in large tiles, 3.42 in tiles
    for the size and 3.48 interleaved, 4 of 12,112,336 43.8, 44.0 and 45.5, 16 of 4,194,304 63.4 and 64.7 interleaved.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((5000, 3000), (2, 2**24), (2**20, 10), (4097, 8191), (2, 3), (23, 394), (2**20, 8), (1, 2**20))
    >>> [transpose(Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['cuda_vec16', 'cuda_interleave', 'cuda_interleave', 'cuda_vec16', 'triton_known_size', 'triton_known_size', 'triton_tile', \
'triton_known_size']
    """
    m, n = problem.sizes["m"], problem.sizes["n"]
    if known_size(problem):
        return ("triton_known_size", "cuda_interleave" if is_narrow(problem) else "triton_tile")
    if is_narrow(problem):
        return ("triton_tile" if _fills_tile(problem) else "cuda_interleave", "triton_known_size")
    return (
        ("triton_tile", "cuda_vec16", "triton_known_size")
        if triton_vectorises(m) and triton_vectorises(n)
        else ("cuda_vec16", "triton_known_size", "triton_tile")
    )
