"""The variant that a user of `add`, `mul` or `div` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, triton_vectorises

KNOWN_ELEMENTS, KNOWN_PAIRS = 2**18, 2**20
"""Up to which a kernel for the size is fastest, and for even numbers of elements, which it loads in pairs or more at once. H200:
sums of 59,060 fp16 take 1.40 us so, 1.44 with a vector a thread and 1.45 in Triton's blocks; quotients of 631,990 bf16 2.28, 2.35
and 2.38; but sums of 656,599 2.58, 2.25 and 2.41."""


def elementwise(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton compiled for the size up to 2^18 elements, and for even numbers up to 2^20; else Triton's blocks of 512 or 1024
    for multiples of 16 elements, and one 16-byte vector a thread of CUDA C++ for others.

    Triton loads no vectors under a mask of another length, unless it knows the length. H200: 2^21 fp16 take 4.15 us in its
    blocks and 4.30 by vectors. Several vectors a thread gain 3 % for some sizes and lose more for others: sums of 2,376,410 fp32
    take 7.21 us so and 7.45 with one, 12,156,553 33.5 and 31.9, products of 835,811 bf16 2.78 and 2.58.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (1, 500, 2**18 + 1, 2**20, 2**22, 2**22 + 4)
    >>> [elementwise(Problem(op="add", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'cuda_vec16', 'triton_known_size', 'triton_adaptive', 'cuda_vec16']
    """
    n = problem.sizes["n"]
    if n <= KNOWN_ELEMENTS or (n % 2 == 0 and n <= KNOWN_PAIRS):
        return ("triton_known_size", "triton_adaptive", "cuda_scalar")
    if triton_vectorises(n):
        return ("triton_adaptive", "cuda_vec16")
    return ("cuda_vec16", "triton_known_size", "cuda_adaptive")
