"""The variant that a user of a copy gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import (
    ONE_ELEMENT_A_THREAD,
    TMA_BYTES,
    Card,
    elements_a_multiprocessor,
    row_bytes,
    triton_vectorises,
)

FEWEST, KNOWN_ELEMENTS = 2**9, 2**17
"""Between which Triton's kernel for the size is fastest. H200: 98 bf16 take 1.10 us so and 1.06 with an element a thread, 846
fp16 0.97 and 1.00, 2,604 bf16 1.20 and 1.22; 280,642 fp16 1.56 and by vectors by size 1.62, but 492,176 fp32 2.11 and 1.92."""
SOME_BYTES = 2**22
"""H200: 492,176 fp32 take 1.92 us with vectors by size in CUDA C++ and 2.06 in Triton's blocks, 2^21 bf16 3.13 and 3.20."""
BULK_BYTES = 2**25
"""From which bulk copies are as fast as vectors, which then no longer gain by loads that the L2 evicts first. H200: 11,679,530
fp32 take 21.04 us by bulk copies, 21.19 with a vector a thread and 21.79 by vectors by size, 20,890,483 bf16 19.15, 19.37 and
19.92, 89,237,978 fp32 165.4, 163.8 and 164.7."""


def copy(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^9 elements, or behind an offset up to 2^15, or up to 1024 a multiprocessor where that is no
    multiple of 16 bytes; else the kernel for the size up to 2^17 elements without an offset; else 16-byte vectors of CUDA C++, as
    many a thread as suit the size, but for vectors that begin on 16 bytes Triton's blocks beyond 4 MiB for multiples of 16
    elements, and bulk copies beyond 32 MiB for others.

    >>> from kernelviz.ops.catalog.best import H200
    >>> places = ((512, 0), (5001, 0), (5001, 4), (2**20, 4), (2**21, 0), (2**23 + 1, 0), (2**23 + 1, 4))
    >>> [copy(Problem(op="copy", sizes={"n": n, "o": o}, dtype="fp32"), H200)[0] for n, o in places]
    ['cuda_scalar', 'triton_known_size', 'cuda_scalar', 'cuda_adaptive', 'triton_block', 'cuda_bulk', 'cuda_adaptive']
    """
    n, offset = problem.sizes["n"], problem.sizes.get("o", 0)
    on_16_bytes = offset % TMA_BYTES == 0
    if offset == 0 and FEWEST < n <= KNOWN_ELEMENTS:
        return ("triton_known_size", "cuda_known_size", "cuda_scalar")
    if n <= ONE_ELEMENT_A_THREAD or (not on_16_bytes and elements_a_multiprocessor(n, card) <= 1024):
        return ("cuda_scalar", "cuda_adaptive")
    if on_16_bytes and triton_vectorises(n) and row_bytes(problem) > SOME_BYTES:
        return ("triton_block", "cuda_adaptive")
    if on_16_bytes and row_bytes(problem) > BULK_BYTES:
        return ("cuda_bulk", "cuda_vec16")
    return ("cuda_adaptive", "cuda_vec16")


LONG_STRIDE, THREADS_OF_MULTIPROCESSOR = 8, 2048
"""The stride from which on a 16-byte vector has at most one element, and the most threads that run at once. H200: 175,752 bf16
of stride 8 take 1.80 us with an element a thread and 1.85 in the kernel that chooses its loads, 164,208 of 16 2.41 and 2.50,
1,108,807 fp16 of stride 2 3.89 and 2.82."""


def strided(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements, and of a stride of at least 8 while all threads run at once, 2048 a
    multiprocessor; else the kernel that chooses its loads by the stride.

    H200: 4447 fp16 of stride 1 take 1.22 us with an element a thread and 1.33 with vectors, 135,602 bf16 1.51 and 1.46.

    >>> from kernelviz.ops.catalog.best import H200
    >>> strided(Problem(op="strided_copy", sizes={"n": 67108864, "s": 8}, dtype="fp32"), H200)[0]
    'cuda_adaptive'
    >>> [strided(Problem(op="strided_copy", sizes={"n": 2**17, "s": s}, dtype="fp32"), H200)[0] for s in (1, 8)]
    ['cuda_adaptive', 'cuda_scalar']
    """
    n = problem.sizes["n"]
    at_once = problem.sizes["s"] >= LONG_STRIDE and elements_a_multiprocessor(n, card) <= THREADS_OF_MULTIPROCESSOR
    if n <= ONE_ELEMENT_A_THREAD or at_once:
        return ("cuda_scalar", "cuda_adaptive")
    return ("cuda_adaptive", "cuda_unrolled")
