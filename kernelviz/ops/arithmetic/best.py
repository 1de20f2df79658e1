"""The variant that a user of `add`, `mul` or `div` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    ONE_ELEMENT_A_THREAD,
    Card,
    elements_a_multiprocessor,
    row_bytes,
    triton_vectorises,
)

SOME_BYTES = 2**21, 3 * 2**22
"""Of x. H200, fp32: 1,813,927 take 5.86 us with as many vectors a thread as suit the size and 6.05 with one, 2^20 take 3.93 and
in Triton's blocks 4.06; 4,322,640 fp16 take 6.64 and 6.92. Outside these limits one vector a thread is faster: 12,953,194 fp32
take 35.6 and 34.0, 7,088,896 bf16 11.09 and 10.46, 903,636 fp16 2.68 and 2.57."""


def elementwise(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements; Triton's blocks of 256 up to 256 elements a multiprocessor, or 1024 that are no
    multiple of 16; as many vectors a thread as suit the size from 2 to 12 MiB; else Triton's blocks of 1024 for multiples of 16
    elements, and one 16-byte vector a thread of CUDA C++ for others.

    Triton loads no vectors under a mask of another length. Few elements take the latency of one load and of what precedes it,
    and smaller blocks reach more multiprocessors.

    >>> from kernelviz.ops.catalog.best import H200
    >>> few, some, many = 2**14, 2**17 - 1, 2**22
    >>> [elementwise(Problem(op="add", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (few, some, 2**20, many, many + 4)]
    ['cuda_scalar', 'triton_adaptive', 'cuda_adaptive', 'triton_block', 'cuda_vec16']
    """
    n = problem.sizes["n"]
    vectorised, of_each = triton_vectorises(n), elements_a_multiprocessor(n, card)
    if n <= ONE_ELEMENT_A_THREAD:
        return ("cuda_scalar", "triton_adaptive")
    if of_each <= (256 if vectorised else 1024):
        return ("triton_adaptive", "cuda_scalar")
    if SOME_BYTES[0] < row_bytes(problem) < SOME_BYTES[1]:
        return ("cuda_adaptive", "triton_block")
    return ("triton_block", "cuda_adaptive") if vectorised else ("cuda_vec16", "cuda_adaptive")
