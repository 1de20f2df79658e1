"""The variant that a user of an activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor, triton_vectorises


def activation(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's blocks for multiples of 16 elements; for others, 16-byte vectors of CUDA C++, or an element a thread up to
    1024 elements a multiprocessor.

    Triton loads no vectors under a mask of another length. The elements behind the last vector follow it in CUDA C++, which
    a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [activation(Problem(op="gelu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (2**20, 2**20 + 8, 1001)]
    ['triton_block', 'cuda_fast_math', 'cuda_scalar']
    """
    n = problem.sizes["n"]
    if triton_vectorises(n):
        return ("triton_block", "cuda_vec16")
    vectors = ("cuda_vec16",) if problem.op == "relu" else ("cuda_fast_math", "cuda_vec16")
    return ("cuda_scalar", *vectors) if elements_a_multiprocessor(n, card) <= 1024 else vectors
