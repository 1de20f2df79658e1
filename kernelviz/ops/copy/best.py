"""The variant that a user of a copy gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, TMA_BYTES, Card, elements_a_multiprocessor, row_bytes

FEWEST, KNOWN_ELEMENTS = 2**9, 2**17
"""Between which Triton's kernel for the size is fastest. H200: 98 bf16 take 1.10 us so and 1.06 with an element a thread, 846
fp16 0.97 and 1.00, 2,604 bf16 1.20 and 1.22; 492,176 fp32 2.11 and 1.92 by vectors by size."""
BULK_BYTES = 2**25
"""From which bulk copies are as fast as vectors, which then no longer gain by loads that the L2 evicts first. H200: 11,679,530
fp32 take 21.04 us by bulk copies and 21.79 by vectors by size, 110,807,696 205.5 and 204.0."""


def copy(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^9 elements, or 2^15 behind an offset; Triton compiled for the size up to 2^17 elements
    without an offset; bulk copies beyond 32 MiB that begin on 16 bytes; else vectors of CUDA C++, as many a thread as suit
    the size.

    >>> from kernelviz.ops.catalog.best import H200
    >>> places = ((512, 0), (5001, 0), (5001, 4), (2**20, 4), (2**23 + 1, 0), (2**23 + 1, 4))
    >>> [copy(Problem(op="copy", sizes={"n": n, "o": o}, dtype="fp32"), H200)[0] for n, o in places]
    ['cuda_scalar', 'triton_known_size', 'cuda_scalar', 'cuda_adaptive', 'cuda_bulk', 'cuda_adaptive']
    """
    n, offset = problem.sizes["n"], problem.sizes.get("o", 0)
    if n <= (ONE_ELEMENT_A_THREAD if offset else FEWEST):
        return ("cuda_scalar", "triton_known_size", "triton_block", "cuda_adaptive", "cuda_known_size")
    if n <= KNOWN_ELEMENTS and not offset:
        return ("triton_known_size", "cuda_known_size", "cuda_scalar", "cuda_adaptive", "triton_block")
    if row_bytes(problem) > BULK_BYTES and offset % TMA_BYTES == 0:
        return ("cuda_bulk", "cuda_vec16", "cuda_adaptive", "cuda_vec16_unrolled", "triton_block")
    return ("cuda_adaptive", "cuda_vec16", "cuda_vec16_unrolled", "triton_known_size", "cuda_known_size")


LONG_STRIDE, THREADS_OF_MULTIPROCESSOR = 8, 2048
"""The stride from which on a 16-byte vector has at most one element, and the most threads that run at once. H200: 175,752 bf16
of stride 8 take 1.80 us with an element a thread and 1.85 in the kernel that chooses its loads, 164,208 of 16 2.41 and 2.50,
1,108,807 fp16 of stride 2 3.89 and 2.82."""

KNOWN_STRIDED = 2**21
"""An estimate."""


def strided(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements, and of a stride of at least 8 while all threads run at once, 2048 a
    multiprocessor; Triton compiled for the size up to 2^21 fp32 of a stride of 2 or 3; else the kernel that chooses its loads by
    the stride.

    Triton's kernel is that of torch.compile, in which 597,062 fp32 of stride 3 take 3.46 us on an H200, 2,097,152 of 2 6.69; the
    kernel that chooses takes 3.70 and 6.82.

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
        return ("cuda_scalar", "triton_block", "cuda_adaptive")
    if problem.dtype == "fp32" and problem.sizes["s"] in (2, 3) and n <= KNOWN_STRIDED:
        return ("triton_block", "cuda_scalar", "cuda_adaptive", "cuda_unrolled")
    return ("cuda_adaptive", "triton_block", "cuda_unrolled", "cuda_scalar")
