"""The variant that a user of `scale` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, row_bytes, triton_vectorises

FEWEST = 2**9
"""H200: 174 fp16 take 0.92 us with an element a thread, and 1.06 by the kernel of `torch.compile`, which knows the size. One
element is a constant for Triton: of fp16 it takes 1.05 us there, and 1.09 in CUDA C++."""
KNOWN_ELEMENTS = 2**17
"""Up to which a kernel for the size is fastest: an estimate, by the kernels of `torch.compile`, which differ by a branch. H200:
87,426 fp32 take 1.38 us so, 1.45 in Triton's blocks and 1.46 with an element a thread; 1,107 fp16 take 1.10 and 1.16."""
STREAMING_BYTES = 2**25
"""Up to which loads that the L2 evicts first are faster. H200: 22,745,503 bf16 take 21.63 us so, and 20.82 without."""


def scale(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^9 elements (one: in Triton), and the kernel for the size up to 2^17; else Triton's blocks for
    multiples of 16 elements; for others 16-byte vectors of CUDA C++, as many a thread as suit the size up to 32 MiB.

    Triton loads no vectors under a mask of another length, unless it knows the length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (500, 1001, 2**20, 2**20 + 4, 2**23 + 4)
    >>> [scale(Problem(op="scale", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['cuda_scalar', 'triton_known_size', 'triton_block', 'cuda_adaptive', 'cuda_vec16']
    """
    n = problem.sizes["n"]
    if n <= FEWEST:
        return ("triton_block", "cuda_scalar") if n == 1 else ("cuda_scalar", "cuda_adaptive")
    if n <= KNOWN_ELEMENTS:
        return ("triton_known_size", "cuda_scalar", "cuda_adaptive")
    if triton_vectorises(n):
        return ("triton_block", "cuda_adaptive")
    streaming = row_bytes(problem) <= STREAMING_BYTES
    return ("cuda_adaptive", "cuda_vec16") if streaming else ("cuda_vec16", "cuda_adaptive")
