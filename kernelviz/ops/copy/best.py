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

SOME_BYTES = 2**22
"""H200: 987,568 bf16 take 1.98 us with vectors by size in CUDA C++ and 2.08 in Triton's blocks; 382,296 take 1.57 and 1.79."""

FEWEST = 2**10
"""H200, all in the stream: 512 fp32 take 1.02 us with an element a thread, 1.04 by the kernel for the size, 1.06 in Triton's
blocks and 1.05 by the driver's copy."""
BLOCK_BYTES = 2**14
"""H200, in the stream: 4096 bf16 take 1.13 us in Triton's blocks, 1.18 by the kernel for the size and 1.16 by the driver; of
fp32, 1.14, 1.17 and 1.22."""
KNOWN_BYTES = 2**18
"""Up to which a kernel for the size has the shortest code. H200, in graphs: 11,374 fp32 take 1.31 us and 1.33 with an element a
thread; 89,540 bf16 take 1.43 and in Triton's blocks 1.47."""


def copy(problem: Problem, card: Card) -> tuple[str, ...]:
    """Without an offset an element a thread up to 2^10 elements, Triton's blocks up to 16 KiB of a multiple of 16, and the kernel
    for the size up to 256 KiB; else an element a thread up to 2^15 elements; else Triton's blocks for multiples of 16 elements
    that begin on 16 bytes, but 16-byte vectors of CUDA C++ up to 4 MiB; for others such vectors, or an element a thread up to
    1024 elements a multiprocessor.

    Triton loads no vectors under a mask of another length or from another address. The elements behind the last vector
    follow it in CUDA C++, which a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> places = ((2**21, 0), (2**20, 0), (2**20, 4), (2**20 + 1, 0), (5001, 0), (5001, 4), (4096, 0), (512, 0))
    >>> [copy(Problem(op="copy", sizes={"n": n, "o": o}, dtype="fp32"), H200)[0] for n, o in places]
    ['triton_block', 'cuda_adaptive', 'cuda_adaptive', 'cuda_adaptive', 'cuda_known_size', 'cuda_scalar', 'triton_block', \
'cuda_scalar']
    """
    n, offset = problem.sizes["n"], problem.sizes.get("o", 0)
    if n <= FEWEST:
        return ("cuda_scalar", "cuda_adaptive")
    if offset == 0 and triton_vectorises(n) and row_bytes(problem) <= BLOCK_BYTES:
        return ("triton_block", "cuda_scalar")
    if offset == 0 and row_bytes(problem) <= KNOWN_BYTES:
        return ("cuda_known_size", "cuda_scalar", "cuda_adaptive")
    if n <= ONE_ELEMENT_A_THREAD:
        return ("cuda_scalar", "cuda_adaptive")
    if triton_vectorises(n) and offset % TMA_BYTES == 0:
        some = row_bytes(problem) <= SOME_BYTES
        return ("cuda_adaptive", "triton_block") if some else ("triton_block", "cuda_adaptive")
    few = elements_a_multiprocessor(n, card) <= 1024
    return ("cuda_scalar", "cuda_adaptive") if few else ("cuda_adaptive", "cuda_vec16")


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
