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
STREAMING_BYTES = 2**25
"""Up to which loads that the L2 evicts first are faster. H200: 20,890,483 bf16 take 19.92 us so and 19.37 without, 30,504,860
take 28.76 and 27.98."""
FEWEST = 2**9
"""H200, all in the stream: 512 fp32 take 1.02 us with an element a thread, 1.04 by the kernel for the size, 1.06 in Triton's
blocks and 1.05 by the driver's copy. One element is a constant for Triton: of fp16 it takes 1.06 us there, and 1.09 in CUDA
C++."""
KNOWN_ELEMENTS = 2**17
"""Up to which Triton's kernel for the size is fastest: an estimate, by the kernels of `torch.compile`, which differ by a branch.
H200: 16,384 fp32 take 1.25 us so, 1.30 by vectors and 1.35 with 16 bytes a thread; 1,647 bf16 take 1.09, and 1.13 with an
element a thread."""


def copy(problem: Problem, card: Card) -> tuple[str, ...]:
    """Without an offset an element a thread up to 2^9 elements (one: in Triton), and the kernel for the size up to 2^17; else an
    element a thread up to 2^15 elements; else Triton's blocks for multiples of 16 elements that begin on 16 bytes, but 16-byte
    vectors of CUDA C++ up to 4 MiB; for others such vectors, as many a thread as suit the size up to 32 MiB, or an element a
    thread up to 1024 elements a multiprocessor.

    Triton loads no vectors under a mask of another length, unless it knows the length, or from another address. The elements
    behind the last vector follow it in CUDA C++, which a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> places = ((2**21, 0), (2**20, 0), (2**20, 4), (2**20 + 1, 0), (2**23 + 1, 0), (5001, 0), (5001, 4), (512, 0))
    >>> [copy(Problem(op="copy", sizes={"n": n, "o": o}, dtype="fp32"), H200)[0] for n, o in places]
    ['triton_block', 'cuda_adaptive', 'cuda_adaptive', 'cuda_adaptive', 'cuda_vec16', 'triton_known_size', 'cuda_scalar', \
'cuda_scalar']
    """
    n, offset = problem.sizes["n"], problem.sizes.get("o", 0)
    if offset == 0 and FEWEST < n <= KNOWN_ELEMENTS:
        return ("triton_known_size", "cuda_known_size", "cuda_scalar")
    if n == 1:
        return ("triton_block", "cuda_scalar")
    if n <= ONE_ELEMENT_A_THREAD:
        return ("cuda_scalar", "cuda_adaptive")
    if triton_vectorises(n) and offset % TMA_BYTES == 0:
        some = row_bytes(problem) <= SOME_BYTES
        return ("cuda_adaptive", "triton_block") if some else ("triton_block", "cuda_adaptive")
    if elements_a_multiprocessor(n, card) <= 1024:
        return ("cuda_scalar", "cuda_adaptive")
    streaming = row_bytes(problem) <= STREAMING_BYTES
    return ("cuda_adaptive", "cuda_vec16") if streaming else ("cuda_vec16", "cuda_adaptive")


FEW_STRIDED = 2**15
"""H200: 12,787 fp32 of stride 7 take 1.42 us with an element a thread and 1.49 in the kernel that chooses its loads; 64 of stride
1 take 1.12 and 1.11."""


def strided(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel that chooses its loads by the stride; an element a thread up to 2^15 elements of another stride than 1.

    >>> from kernelviz.ops.catalog.best import H200
    >>> strided(Problem(op="strided_copy", sizes={"n": 67108864, "s": 8}, dtype="fp32"), H200)[0]
    'cuda_adaptive'
    >>> strided(Problem(op="strided_copy", sizes={"n": 12_787, "s": 7}, dtype="fp32"), H200)[0]
    'cuda_scalar'
    """
    if problem.sizes["s"] > 1 and problem.sizes["n"] <= FEW_STRIDED:
        return ("cuda_scalar", "cuda_adaptive")
    return ("cuda_adaptive", "cuda_unrolled")
