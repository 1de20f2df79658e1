"""The variant that a user of `rope` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_IN_A_PROGRAM = 1024
"""Pairs of the heads of a token, each number of heads and the pairs of one rounded up to a power of two, that a program of
Triton has in registers in time. H200: 3 tokens of 11 heads of 80 fp32 take 1.18 us in Triton and 1.31 in CUDA C++, one of 11
of 132 fp16 1.40 and 1.13."""
FEW_TOKENS, FEW_PAIRS = 16, 128
"""H200: 9 tokens of 5 heads of 8 fp32 take 0.85 us in Triton and 0.95 in CUDA C++, 279 of 44 heads of 4 fp16 1.60 and 1.50,
and 1164 of 24 heads of 16 fp32 2.11 and 2.28."""
MANY_TOKENS, MANY_PAIRS = 2**13, 2**20
"""H200: 6009 tokens of 42 heads of 16 fp16 take 5.38 and 5.42, 194,169 of 43 heads of 8 bf16 119 and 64."""


def rope(problem: Problem, card: Card) -> tuple[str, ...]:
    """A program of Triton a token for at most 16 tokens, and for at most 2^13 tokens of at least 128 pairs, if the pairs, as
    powers of two, are at most 1024, and for more than 2^20 pairs of 16-bit numbers, at least 256 a token, in halves of an odd
    length; else the CUDA C++ that leaves the inputs as they are.

    CUDA C++ has 2 bytes a thread of a half of an odd length. H200: 33,391 tokens of 60 heads of 30 fp16 take 101 us in Triton
    and 117 in CUDA C++.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16384, 40, 64), (16384, 40, 15), (2, 3, 3), (1000, 3, 3), (1000, 20, 8))
    >>> problems = [Problem(op="rope", sizes={"t": t, "hq": h, "hk": 2, "p": p}, dtype="bf16") for t, h, p in shapes]
    >>> [rope(problem, H200)[0] for problem in problems]
    ['cuda_vec16', 'triton_token', 'triton_token', 'cuda_vec16', 'triton_token']
    """
    t, hq, hk, p = (problem.sizes[axis] for axis in ("t", "hq", "hk", "p"))
    of_token = (hq + hk) * p
    in_program = (_power_of_two(hq) + _power_of_two(hk)) * _power_of_two(p)
    some_tokens = t <= FEW_TOKENS or (of_token >= FEW_PAIRS and t <= MANY_TOKENS)
    odd = problem.dtype != "fp32" and p % 2 == 1
    if (in_program <= MOST_IN_A_PROGRAM and some_tokens) or (
        odd and t * of_token > MANY_PAIRS and of_token >= 2 * FEW_PAIRS
    ):
        return ("triton_token", "cuda_vec16")
    return ("cuda_vec16", "triton_token")


def _power_of_two(count: int) -> int:
    """The smallest that is no less."""
    return 1 << (count - 1).bit_length()
