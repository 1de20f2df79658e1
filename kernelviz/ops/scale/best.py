"""The variant that a user of `scale` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, Card, elements_a_multiprocessor, triton_vectorises


def scale(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements; else Triton's blocks for multiples of 16 elements; for others, 16-byte vectors of
    CUDA C++, or an element a thread up to 1024 elements a multiprocessor.

    Triton loads no vectors under a mask of another length. The elements behind the last vector follow it in CUDA C++, which
    a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [scale(Problem(op="scale", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (2**20, 2**20 + 4, 1001)]
    ['triton_block', 'cuda_adaptive', 'cuda_scalar']
    """
    n = problem.sizes["n"]
    if n <= ONE_ELEMENT_A_THREAD:
        return ("cuda_scalar", "cuda_adaptive")
    if triton_vectorises(n):
        return ("triton_block", "cuda_adaptive")
    few = elements_a_multiprocessor(n, card) <= 1024
    return ("cuda_scalar", "cuda_adaptive") if few else ("cuda_adaptive", "cuda_vec16")
