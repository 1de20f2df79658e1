"""The variant that a user of a cast gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, elements_a_multiprocessor, triton_vectorises

KNOWN_ELEMENTS, KNOWN_PAIRS = 2**18, 2**20
"""Up to which a kernel for the size is fastest, and for even numbers of elements, which it loads in pairs or more at once. H200:
111,096 fp32 to bf16 take 1.42 us so and 1.48 by vectors by size, 505,248 bf16 to fp8 1.58 and 1.63; 64 to 511 elements take 1 %
less than with an element a thread."""
WIDE_STORE_ELEMENTS = 2**16
"""A multiprocessor, from 2^15 on, from 16 to eight bits: there four vectors a thread are slower than one store of 16 bytes. H200:
7,742,813 bf16 take 6.35 us so, and 6.57 by vectors by size; 165,901,040 take 111.6 and 111.4, 112,788 take 1.53 and 1.49. From
fp32, 7,815,443 take 9.95 and 9.73."""


def cast(problem: Problem, card: Card) -> tuple[str, ...]:
    """The kernel for the size up to 2^18 elements, and for even numbers up to 2^20; else one to four 16-byte vectors a thread by
    size, but to eight bits, Triton's blocks for multiples of 16 elements, and for other numbers of bf16 one 16-byte store a
    thread from 2^15 to 2^16 elements a multiprocessor.

    Triton loads no vectors under a mask of another length, unless it knows the length.

    >>> from kernelviz.ops.catalog.best import H200
    >>> lengths = (100, 1001, 2**20, 2**20 + 1)
    >>> [cast(Problem(op="cast_bf16", sizes={"n": n}, dtype="fp32"), H200)[0] for n in lengths]
    ['triton_known_size', 'triton_known_size', 'triton_known_size', 'cuda_adaptive']
    >>> [cast(Problem(op="cast_fp8", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (7_742_813, 2**25, 2**25 + 1)]
    ['cuda_wide_store', 'triton_block', 'cuda_adaptive']
    """
    n = problem.sizes["n"]
    if n <= KNOWN_ELEMENTS or (n % 2 == 0 and n <= KNOWN_PAIRS):
        return ("triton_known_size", "cuda_adaptive")
    if problem.op != "cast_fp8":
        return ("cuda_adaptive", "triton_block")
    if triton_vectorises(n):
        return ("triton_block", "cuda_adaptive")
    wide = WIDE_STORE_ELEMENTS // 2 <= elements_a_multiprocessor(n, card) <= WIDE_STORE_ELEMENTS
    return ("cuda_wide_store", "cuda_adaptive") if wide and problem.dtype == "bf16" else ("cuda_adaptive", "cuda_vec16")
