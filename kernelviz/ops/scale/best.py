"""The variant that a user of `scale` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, triton_vectorises

KNOWN_ELEMENTS, KNOWN_PAIRS = 2**17, 2**20
"""Up to which a kernel for the size is fastest, and for even numbers of elements, which it loads in pairs or more at once. H200:
from 1 to 512 elements it takes as long as a kernel with an element a thread, and 16,384 fp16 take 1.24 and 1.31 us; 365,720 take
1.55, and by vectors by size 1.56."""
STREAMING_BYTES = 2**25
"""Up to which loads that the L2 evicts first are faster. H200: 22,745,503 bf16 take 21.63 us so, and 20.82 without."""


def scale(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton compiled for the size up to 2^17 elements, and for even numbers up to 2^20; else Triton's blocks for multiples
    of 16 elements; for others 16-byte vectors of CUDA C++, as many a thread as suit the size up to 32 MiB.

    Triton loads no vectors under a mask of another length, unless it knows the length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (500, 1001, 2**20, 2**21, 2**20 + 4, 2**23 + 4)
    >>> [scale(Problem(op="scale", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'triton_known_size', 'triton_block', 'cuda_adaptive', 'cuda_vec16']
    """
    n = problem.sizes["n"]
    if n <= KNOWN_ELEMENTS or (n % 2 == 0 and n <= KNOWN_PAIRS):
        return ("triton_known_size", "triton_block" if triton_vectorises(n) else "cuda_adaptive")
    if triton_vectorises(n):
        return ("triton_block", "cuda_adaptive")
    streaming = row_bytes(problem) <= STREAMING_BYTES
    return ("cuda_adaptive", "cuda_vec16") if streaming else ("cuda_vec16", "cuda_adaptive")
