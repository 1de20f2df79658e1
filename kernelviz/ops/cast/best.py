"""The variant that a user of a cast gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, triton_vectorises

KNOWN_ELEMENTS, KNOWN_FP32, KNOWN_PAIRS = 2**18, 2**19, 2**20
"""Up to which a kernel for the size is fastest, from fp32, of which a warp loads a line in single elements, and for even numbers
of elements, which it loads in pairs or more at once. H200: 111,096 fp32 to bf16 take 1.42 us so and 1.48 by vectors by size,
363,265 1.70 and 1.85, 433,961 to fp8 1.77 and 1.94, 505,248 bf16 to fp8 1.58 and 1.63; 64 to 511 elements take 1 % less than
with an element a thread."""


def cast(problem: Problem, card: Card) -> tuple[str, ...]:
    """Triton compiled for the size up to 2^18 elements, from fp32 2^19, and for even numbers up to 2^20; else Triton's blocks
    for multiples of 16 elements, and one to four 16-byte vectors a thread by size for others.

    Triton loads no vectors under a mask of another length, unless it knows the length. H200: 1,233,600 fp32 to fp16 take 3.02 us
    in its blocks and 3.21 by vectors by size, 367,480,160 to bf16 501.6 and 498.9.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (100, 2**19 - 1, 2**20, 2**20 + 1)
    >>> [cast(Problem(op="cast_bf16", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'triton_known_size', 'cuda_adaptive']
    >>> [cast(Problem(op="cast_fp8", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (2**19 - 1, 2**25, 2**25 + 1)]
    ['cuda_adaptive', 'triton_block', 'cuda_adaptive']
    """
    n = problem.sizes["n"]
    known = KNOWN_FP32 if problem.dtype == "fp32" else KNOWN_ELEMENTS
    if n <= known or (n % 2 == 0 and n <= KNOWN_PAIRS):
        return ("triton_known_size", "cuda_scalar", "triton_block", "cuda_adaptive")
    if triton_vectorises(n):
        return ("triton_block", "cuda_adaptive")
    return ("cuda_adaptive", "triton_known_size", "cuda_vec16", "cuda_wide_store")
