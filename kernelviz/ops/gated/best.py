"""The variant that a user of a gated activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, Card, elements_a_multiprocessor, triton_vectorises

A_THREAD_BACKWARD = 2**16
"""H200: backward, 34,416 fp16 take 1.49 us with an element a thread and 1.65 in Triton's blocks. An estimate beyond."""
A_THREAD_UNALIGNED = 2048
"""Elements a multiprocessor. H200: 230,362 fp16 take 1.72 us with an element a thread and 1.82 with vectors, 192,204 fp32 1.77
and 1.79; forward, 131,072 fp16 take 1.59 in Triton's blocks."""


def gated(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements, and 2^16 backward; else Triton's blocks for multiples of 16 elements; for others,
    16-byte vectors of CUDA C++, or an element a thread up to 2048 elements a multiprocessor.

    Triton loads no vectors under a mask of another length. The elements behind the last vector follow it in CUDA C++, which
    a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((8192, 8192), (8191, 8191), (28, 2373), (4, 4))
    >>> [gated(Problem(op="swiglu", sizes={"m": m, "n": n}, dtype="bf16"), H200)[0] for m, n in shapes]
    ['triton_block', 'cuda_vec16', 'cuda_scalar', 'cuda_scalar']
    """
    elements = problem.sizes["m"] * problem.sizes["n"]
    vectorised = triton_vectorises(elements)
    most = A_THREAD_BACKWARD if problem.direction == "backward" else ONE_ELEMENT_A_THREAD
    if elements <= most or (not vectorised and elements_a_multiprocessor(elements, card) <= A_THREAD_UNALIGNED):
        return ("cuda_scalar", "cuda_vec16")
    return ("triton_block", "cuda_vec16") if vectorised else ("cuda_vec16", "triton_block")
