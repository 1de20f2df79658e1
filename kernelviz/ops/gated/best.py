"""The variant that a user of a gated activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, Card, elements_a_multiprocessor, triton_vectorises


def gated(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements; else Triton's blocks for multiples of 16 elements; for others, 16-byte vectors of
    CUDA C++, or an element a thread up to 1024 elements a multiprocessor.

    Triton loads no vectors under a mask of another length. The elements behind the last vector follow it in CUDA C++, which
    a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (8191, 8191), (28, 2373), (4, 4))
    >>> [gated(Problem(op="swiglu", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_block', 'cuda_vec16', 'cuda_scalar', 'cuda_scalar']
    """
    elements = problem.sizes["m"] * problem.sizes["n"]
    vectorised = triton_vectorises(elements)
    if elements <= ONE_ELEMENT_A_THREAD or (not vectorised and elements_a_multiprocessor(elements, card) <= 1024):
        return ("cuda_scalar", "cuda_vec16")
    return ("triton_block", "cuda_vec16") if vectorised else ("cuda_vec16", "triton_block")
