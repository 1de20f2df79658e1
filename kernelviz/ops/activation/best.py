"""The variant that a user of an activation gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FAST_ELEMENTS, FAST_GELU = 2**16, 2**9
"""Up to which `cuda_fast_math` has one element a thread, and the fewest instructions. H200: sigmoid of 16,942 fp16 takes 1.32 us
so, and 1.37 by the kernel for the size, gelu of 2472 1.18 and 1.09, of 14,644 bf16 1.37 and 1.31."""
KNOWN_ELEMENTS, KNOWN_PAIRS = 2**17, 2**20
"""Up to which a kernel for the size is fastest, and for even numbers of elements, which it loads in pairs or more at once. H200:
gelu of 172,942 bf16 takes 1.56 us so and 1.70 by vectors with fast math, sigmoid of 890,176 fp16 2.09 and 2.17, relu of 692,100
bf16 1.76 and by vectors 1.88, but of 933,995 2.58 and 2.17."""


def activation(problem: Problem, card: Card) -> tuple[str, ...]:
    """An element a thread with fast math for sigmoid and silu up to 2^16 elements, and for gelu up to 2^9; else Triton
    compiled for the size up to 2^17 elements, and for even numbers up to 2^20; else 16-byte vectors of CUDA C++, with fast
    math except for relu.

    H200: Triton's blocks of 1024 are as fast as vectors for multiples of 16 elements (relu of 2^24 fp16: 15.68 us and 15.67), but
    load no vectors under a mask of another length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (1001, 2**17 - 1, 2**20, 2**20 + 8)
    >>> [activation(Problem(op="gelu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'triton_known_size', 'cuda_fast_math']
    >>> [activation(Problem(op=op, sizes={"n": 1001}, dtype="bf16"), H200)[0] for op in ("silu", "sigmoid")]
    ['cuda_fast_math', 'cuda_fast_math']
    >>> lengths = (100, 1024, 2**18, 2**18 + 1)
    >>> [activation(Problem(op="relu", sizes={"n": n}, dtype="bf16"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'triton_known_size', 'cuda_vec16']
    """
    n, exact = problem.sizes["n"], problem.op == "relu"
    vectors = ("cuda_vec16",) if exact else ("cuda_fast_math", "cuda_vec16")
    if not exact and n <= (FAST_GELU if problem.op == "gelu" else FAST_ELEMENTS):
        return vectors
    if n <= KNOWN_ELEMENTS or (n % 2 == 0 and n <= KNOWN_PAIRS):
        return ("triton_known_size", *vectors)
    return (vectors[0], "triton_known_size", *vectors[1:])
