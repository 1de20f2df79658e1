"""The variant that a user of `transpose` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, triton_vectorises

KNOWN_ELEMENTS = 2**21
"""Of a matrix, up to which tiles of 1024 elements for the size are fastest. H200: 4 rows of 2048 bf16 take 1.04 us so and 1.15
interleaved, 7 of 167,317 fp16 2.21 and 2.66, 341 of 1926 2.11, and 3.52 in padded tiles; 796,801 of 4 with relu 5.17 and 4.20."""
NARROW = 64
"""Rows or columns of which one tile has all. H200: 1,538,418 rows of 23 fp16 take 37.2 us so and 51.2 by vectors, 64 of 524,288
bf16 31.1 and 30.2."""


def known_size(problem: Problem) -> bool:
    """Whether tiles of 1024 elements, compiled for the size, are fastest.

    >>> shapes = ((41, 42), (2, 2876), (2, 2**21), (4096, 4096))
    >>> [known_size(Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16")) for m, n in shapes]
    [True, True, False, False]
    """
    return problem.sizes["m"] * problem.sizes["n"] <= KNOWN_ELEMENTS


def is_narrow(problem: Problem) -> bool:
    """Whether one tile has all rows or all columns.

    >>> [is_narrow(Problem(op="transpose", sizes={"m": m, "n": 2**20}, dtype="bf16")) for m in (2, 64, 100)]
    [True, True, False]
    """
    return min(problem.sizes["m"], problem.sizes["n"]) <= NARROW


def transpose(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's tiles for the size up to 2^21 elements; beyond them Triton's large tiles if both sides are multiples of 16, else
    one tile of all rows or columns if these are at most 64, else 16-byte vectors of CUDA C++.

    Triton loads rows of another length in pieces. H200: 11,587 rows of 1012 fp32 take 23.7 us by vectors, 28.4 in Triton's large
    tiles and 33.6 in those for the size; 32 of 131,072 bf16 5.10, 4.96 and 4.99.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = ((23, 394), (4096, 8192), (2, 2**24), (5000, 3000))
    >>> [transpose(Problem(op="transpose", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in sizes]
    ['triton_known_size', 'triton_tile', 'cuda_interleave', 'cuda_vec16']
    """
    if known_size(problem):
        return ("triton_known_size", "cuda_interleave", "triton_tile", "cuda_vec16", "cuda_vec16_small")
    if triton_vectorises(problem.sizes["m"]) and triton_vectorises(problem.sizes["n"]):
        return ("triton_tile", "triton_known_size", "cuda_vec16", "cuda_interleave", "cuda_vec16_small")
    if is_narrow(problem):
        return ("cuda_interleave", "triton_known_size", "triton_tile", "cuda_vec16", "cuda_tma")
    return ("cuda_vec16", "triton_known_size", "triton_tile", "cuda_interleave", "cuda_vec16_small")
