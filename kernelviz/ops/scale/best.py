"""The variant that a user of `scale` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes

KNOWN_ELEMENTS = 2**17
"""Up to which a kernel for the size is fastest. H200: from 1 to 512 elements it takes as long as a kernel with an element a
thread, and 16,384 fp16 take 1.24 and 1.31 us. 365,720 take 1.55, and by vectors by size 1.56."""
STREAMING_BYTES = 2**25
"""Up to which loads that the L2 evicts first are faster. H200: 22,745,503 bf16 take 21.63 us so, and 20.82 without."""


def scale(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel for the size up to 2^17 elements; else 16-byte vectors of CUDA C++, as many a thread as suit the size up to 32
    MiB, and one beyond.

    H200: Triton's blocks of 1024 are as fast as one vector for multiples of 16 elements (2^24 fp32: 30.18 us and 30.25), but load
    no vectors under a mask of another length; 2^22 fp16 take 4.99, and by vectors by size 4.83.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (500, 1001, 2**20, 2**23 + 4)
    >>> [scale(Problem(op="scale", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'cuda_adaptive', 'cuda_vec16']
    """
    if problem.sizes["n"] <= KNOWN_ELEMENTS:
        return ("triton_known_size", "cuda_adaptive")
    streaming = row_bytes(problem) <= STREAMING_BYTES
    return ("cuda_adaptive", "cuda_vec16") if streaming else ("cuda_vec16", "cuda_adaptive")
