"""The variant that a user of a copy gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, TMA_BYTES, Card, elements_a_multiprocessor, row_bytes

FEWEST, KNOWN_ELEMENTS, KNOWN_PAIRS_BYTES = 2**9, 2**17, 2**20
"""Between which Triton's kernel for the size is fastest, and bytes of an even number, which it loads in pairs or more. H200: 98
bf16 take 1.10 us so and 1.06 with an element a thread, 846 fp16 0.97 and 1.00, 2,604 bf16 1.20 and 1.22; 280,642 fp16 1.56 and by
vectors by size 1.62, 524,288 1.62 and 1.68, but 492,176 fp32 2.11 and 1.92."""
BULK_BYTES = 2**25
"""From which bulk copies are as fast as vectors, which then no longer gain by loads that the L2 evicts first. H200: 11,679,530
fp32 take 21.04 us by bulk copies, 21.19 with a vector a thread and 21.79 by vectors by size, 20,890,483 bf16 19.15, 19.37 and
19.92, 89,237,978 fp32 165.4, 163.8 and 164.7."""


def copy(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^9 elements, or behind an offset up to 2^15, or up to 1024 a multiprocessor where that is no
    multiple of 16 bytes; else, without an offset, the kernel for the size up to 2^17 elements, and for even numbers up to 1 MiB;
    else 16-byte vectors of CUDA C++, as many a thread as suit the size, but bulk copies of more than 32 MiB that begin on 16
    bytes.

    Triton's blocks are as fast for multiples of 16 elements. H200: 15,044,688 bf16 take 14.10 us in them and 14.08 by vectors.

    >>> from kernelviz.ops.catalog.best import H200
    >>> places = ((512, 0), (5001, 0), (5001, 4), (2**20, 4), (2**21, 0), (2**23 + 1, 0), (2**23 + 1, 4))
    >>> [copy(Problem(op="copy", sizes={"n": n, "o": o}, dtype="fp32"), H200)[0] for n, o in places]
    ['cuda_scalar', 'triton_known_size', 'cuda_scalar', 'cuda_adaptive', 'cuda_adaptive', 'cuda_bulk', 'cuda_adaptive']
    """
    n, offset = problem.sizes["n"], problem.sizes.get("o", 0)
    on_16_bytes = offset % TMA_BYTES == 0
    known = n <= KNOWN_ELEMENTS or (n % 2 == 0 and row_bytes(problem) <= KNOWN_PAIRS_BYTES)
    if offset == 0 and n > FEWEST and known:
        return ("triton_known_size", "cuda_known_size", "cuda_scalar")
    if n <= ONE_ELEMENT_A_THREAD or (not on_16_bytes and elements_a_multiprocessor(n, card) <= 1024):
        return ("cuda_scalar", "cuda_adaptive")
    if on_16_bytes and row_bytes(problem) > BULK_BYTES:
        return ("cuda_bulk", "cuda_vec16")
    return ("cuda_adaptive", "cuda_vec16")


SECTOR_BYTES = 32
"""The least that a load reads of memory, so that strides of as many bytes leave nothing to share between elements. H200: 164,208
bf16 of stride 16 take 2.41 us with an element a thread and 2.50 in the kernel that chooses its loads, 37,369,760 287.8 and 287.9,
14,581,368 of 64 252 and 313; but of 16 bytes, 32,897,376 fp32 of stride 4 take 156 and 147, and 1,108,807 fp16 of 2 3.89 and
2.82."""


def strided(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^15 elements, and of a stride of at least 32 bytes; else the kernel that chooses its loads by
    the stride.

    H200: 4447 fp16 of stride 1 take 1.22 us with an element a thread and 1.33 with vectors, 135,602 bf16 1.51 and 1.46.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [strided(Problem(op="strided_copy", sizes={"n": 2**26, "s": s}, dtype="fp32"), H200)[0] for s in (1, 4, 8)]
    ['cuda_adaptive', 'cuda_adaptive', 'cuda_scalar']
    >>> strided(Problem(op="strided_copy", sizes={"n": 2**15, "s": 1}, dtype="fp32"), H200)[0]
    'cuda_scalar'
    """
    if problem.sizes["n"] <= ONE_ELEMENT_A_THREAD or row_bytes(problem, "s") >= SECTOR_BYTES:
        return ("cuda_scalar", "cuda_adaptive")
    return ("cuda_adaptive", "cuda_unrolled")
