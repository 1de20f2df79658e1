"""The variant that a user of a cast gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, Card, elements_a_multiprocessor, triton_vectorises


def cast(problem: Problem, card: Card) -> tuple[str, ...]:
    """One to four 16-byte vectors a thread by size, but an element a thread up to 2^15 elements, and up to 1024 elements a
    multiprocessor that are no multiple of 16.

    The elements behind the last vector follow it, which a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [cast(Problem(op="cast_bf16", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (65536, 1001, 2**20 + 1)]
    ['cuda_adaptive', 'cuda_scalar', 'cuda_adaptive']
    """
    n = problem.sizes["n"]
    if n <= ONE_ELEMENT_A_THREAD or (not triton_vectorises(n) and elements_a_multiprocessor(n, card) <= 1024):
        return ("cuda_scalar", "cuda_adaptive")
    return ("cuda_adaptive", "triton_block")
