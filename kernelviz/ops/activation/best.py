"""The variant that a user of an activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, Card, elements_a_multiprocessor, triton_vectorises

FAST_ELEMENTS = 2**16
"""Up to which `cuda_fast_math` has one element a thread."""


def activation(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^16 elements, with fast math, of relu up to 2^15; else Triton's blocks for multiples of 16
    elements, and for other lengths 16-byte vectors of CUDA C++, or an element a thread up to 1024 elements a multiprocessor.

    Triton loads no vectors under a mask of another length. The elements behind the last vector follow it in CUDA C++, which
    a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [activation(Problem(op="gelu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (1001, 2**20, 2**20 + 8)]
    ['cuda_fast_math', 'triton_block', 'cuda_fast_math']
    >>> [activation(Problem(op="relu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (1024, 2**17, 2**20 + 8)]
    ['cuda_scalar', 'triton_block', 'cuda_vec16']
    """
    n = problem.sizes["n"]
    vectors = ("cuda_vec16",) if problem.op == "relu" else ("cuda_fast_math", "cuda_vec16")
    if n <= FAST_ELEMENTS and problem.op != "relu":
        return vectors
    if n <= ONE_ELEMENT_A_THREAD:
        return ("cuda_scalar", *vectors)
    if triton_vectorises(n):
        return ("triton_block", "cuda_vec16")
    return ("cuda_scalar", *vectors) if elements_a_multiprocessor(n, card) <= 1024 else vectors
