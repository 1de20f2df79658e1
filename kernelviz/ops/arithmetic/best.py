"""The variant that a user of `add`, `mul` or `div` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor, triton_vectorises


def elementwise(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton's blocks of 1024 for multiples of 16 elements and 16-byte vectors of CUDA C++ for others, but Triton's blocks
    of 256 for few elements.

    Triton loads no vectors under a mask of another length. Few elements take the latency of one load, whatever its width,
    and smaller blocks reach more multiprocessors.

    >>> from kernelviz.ops.catalog.best import H200
    >>> few, some, many = 2**14, 2**17 - 1, 2**20
    >>> [elementwise(Problem(op="add", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (few, some, many, many + 4)]
    ['triton_adaptive', 'triton_adaptive', 'triton_block', 'cuda_vec16']
    """
    n = problem.sizes["n"]
    vectorised, of_each = triton_vectorises(n), elements_a_multiprocessor(n, card)
    if of_each <= (256 if vectorised else 1024):
        return ("triton_adaptive", "cuda_scalar")
    return ("triton_block", "cuda_adaptive") if vectorised else ("cuda_vec16", "cuda_adaptive")
