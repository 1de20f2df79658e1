"""The variant that a user of `rope` gets."""

from __future__ import annotations

from kernelviz.core.dtypes import dtype as dtype_named
from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_IN_A_PROGRAM = 512
"""Pairs of the heads of a token, each number of heads and the pairs of one rounded up to a power of two: four for each thread of
a program of Triton. H200: one token of 11 heads of 124 bf16, 1024 so, takes 1.37 us in Triton and 1.24 in CUDA C++, 5 of 10 of
116 fp16, 640 so, 1.08 and 0.99, 32 of 8 of 128 fp16, 512 so, 1.37 and 1.42."""
FEW_TOKENS, SHORT_TOKEN_BYTES = 16, 640
"""Tokens, and bytes of one half of all heads of a token, up to which CUDA C++ has several tokens a block. H200: 9 tokens of 5
heads of 8 fp32 take 0.85 us in Triton and 0.95 in CUDA C++, 1680 of 16 heads of 32 fp16 2.41 and 2.09, 1164 of 24 heads of 16
fp32 2.11 and 2.28."""
MANY_TOKENS = 2**13
"""H200: 6528 tokens of 16 heads of 48 fp16 take 6.14 and 6.06, 8808 of 10 heads of 84 fp32 19.3 and 15.5."""


def rope(problem: Problem, card: Card) -> tuple[str, ...]:
    """Where at most 512 pairs remain after heads and pairs are rounded up to powers of two, a program of Triton a token for
    at most 16 tokens, or up to 2^13 with more than 640 bytes in one half of all heads; else the CUDA C++ that leaves the
    inputs as they are.

    That many heads whose halves are narrow vectors are read faster as pieces of shared memory is an estimate. H200: 33,391 tokens
    of 60 heads of 30 fp16 took 101 us in Triton and 117 in CUDA C++ with 2 bytes a thread of each half.

    >>> from kernelviz.ops.catalog.best import H200
    >>> shapes = ((16384, 40, 64), (16384, 40, 15), (2, 3, 3), (1000, 3, 3), (1000, 2, 100))
    >>> problems = [Problem(op="rope", sizes={"t": t, "hq": h, "hk": 2, "p": p}, dtype="bf16") for t, h, p in shapes]
    >>> [rope(problem, H200)[0] for problem in problems]
    ['cuda_vec16', 'cuda_vec16', 'triton_token', 'cuda_vec16', 'triton_token']
    """
    t, hq, hk, p = (problem.sizes[axis] for axis in ("t", "hq", "hk", "p"))
    of_token = (hq + hk) * p
    in_program = (_power_of_two(hq) + _power_of_two(hk)) * _power_of_two(p)
    long_tokens = of_token * dtype_named(problem.dtype).itemsize_bytes > SHORT_TOKEN_BYTES
    some_tokens = t <= FEW_TOKENS or (long_tokens and t <= MANY_TOKENS)
    if in_program <= MOST_IN_A_PROGRAM and some_tokens:
        return ("triton_token", "cuda_vec16")
    return ("cuda_vec16", "triton_token")


def _power_of_two(count: int) -> int:
    """The smallest that is no less."""
    return 1 << (count - 1).bit_length()
