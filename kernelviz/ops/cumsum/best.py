"""The variant that a user of `cumsum` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MANY = 2**22
"""H200, bf16: 2^17 elements take 6.8 us in one pass and 7.6 in three kernels, 9e7 take 158 and 138. Lines through these times
meet below 2^22."""


def scan(problem: Problem, card: Card) -> tuple[str, ...]:
    """One pass with decoupled look-back, but three kernels of CUDA C++ for more than 2^22 elements of 16 bits.

    Tiles are looked back at one after the other, whatever their format, which takes longer than reading 16-bit elements a
    second time.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((65536, "fp32"), (2**26, "fp32"), (2**26, "bf16"))
    >>> [scan(Problem(op="cumsum", sizes={"n": n}, dtype=dtype), H200)[0] for n, dtype in cases]
    ['cuda_look_back', 'cuda_look_back', 'cuda_three_kernels']
    """
    if problem.dtype != "fp32" and problem.sizes["n"] > MANY:
        return ("cuda_three_kernels", "cuda_look_back")
    return ("cuda_look_back", "triton_three_kernels")
