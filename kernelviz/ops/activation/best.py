"""The variant that a user of an activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, triton_vectorises

FEWEST = 2**9
"""Of relu. H200: 62 fp16 take 0.93 us with an element a thread, and 1.00 by the kernel of `torch.compile`, which knows the
size."""
FAST_ELEMENTS = 2**16
"""Up to which `cuda_fast_math` has one element a thread, and the fewest instructions."""
KNOWN_ELEMENTS, KNOWN_PAIRS = 2**17, 2**20
"""Up to which a kernel for the size is fastest, and of relu for even numbers of elements: estimates, by the kernels of
`torch.compile`, which differ by a branch. H200: relu of 116,170 fp32 takes 1.43 us so, 1.51 in Triton's blocks and 1.57 by
vectors; of 810,328 fp16 1.93 and by vectors 2.00; sigmoid of 81,544 bf16 1.49, 1.61, and by vectors with fast math 1.54."""


def activation(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread up to 2^16 elements with fast math, of relu up to 2^9; else the kernel for the size up to 2^17, of
    relu for even numbers up to 2^20; but from 2^16 on Triton's blocks for multiples of 16 elements, and else 16-byte vectors of
    CUDA C++.

    Triton loads no vectors under a mask of another length, unless it knows the length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [activation(Problem(op="gelu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (1001, 2**17 - 1, 2**20, 2**20 + 8)]
    ['cuda_fast_math', 'triton_known_size', 'triton_block', 'cuda_fast_math']
    >>> lengths = (100, 1024, 2**18, 2**18 + 2, 2**18 + 1)
    >>> [activation(Problem(op="relu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in lengths]
    ['cuda_scalar', 'triton_known_size', 'triton_block', 'triton_known_size', 'cuda_vec16']
    """
    n, exact = problem.sizes["n"], problem.op == "relu"
    vectors = ("cuda_vec16",) if exact else ("cuda_fast_math", "cuda_vec16")
    if n <= (FEWEST if exact else FAST_ELEMENTS):
        return ("cuda_scalar",) if exact else vectors
    if n > FAST_ELEMENTS and triton_vectorises(n):
        return ("triton_block", *vectors)
    if n <= KNOWN_ELEMENTS or (exact and n % 2 == 0 and n <= KNOWN_PAIRS):
        return ("triton_known_size", "cuda_scalar", *vectors)
    return vectors
