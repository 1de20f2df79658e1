"""The variant that a user of a cast gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import ONE_ELEMENT_A_THREAD, Card, elements_a_multiprocessor, triton_vectorises

WIDE_STORE_ELEMENTS = 2**16
"""A multiprocessor, from 2^15 on, to eight bits: there four vectors a thread are slower than one store of 16 bytes. H200:
7,742,813 bf16 take 6.35 us so, and 6.57 by vectors by size; 165,901,040 take 111.6 and 111.4, 112,788 take 1.53 and 1.49."""


def cast(problem: Problem, card: Card) -> tuple[str, ...]:
    """One to four 16-byte vectors a thread by size, but an element a thread up to 2^15 elements, and up to 1024 elements a
    multiprocessor that are no multiple of 16; to eight bits, one 16-byte store a thread from 2^15 to 2^16 elements a
    multiprocessor.

    The elements behind the last vector follow it, which a small problem waits for.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [cast(Problem(op="cast_bf16", sizes={"n": n}, dtype="fp32"), H200)[0] for n in (65536, 1001, 2**20 + 1)]
    ['cuda_adaptive', 'cuda_scalar', 'cuda_adaptive']
    >>> cast(Problem(op="cast_fp8", sizes={"n": 7_742_813}, dtype="bf16"), H200)[0]
    'cuda_wide_store'
    """
    n = problem.sizes["n"]
    if n <= ONE_ELEMENT_A_THREAD or (not triton_vectorises(n) and elements_a_multiprocessor(n, card) <= 1024):
        return ("cuda_scalar", "cuda_adaptive")
    if (
        problem.op == "cast_fp8"
        and WIDE_STORE_ELEMENTS // 2 <= elements_a_multiprocessor(n, card) <= WIDE_STORE_ELEMENTS
    ):
        return ("cuda_wide_store", "cuda_adaptive")
    return ("cuda_adaptive", "triton_block")
