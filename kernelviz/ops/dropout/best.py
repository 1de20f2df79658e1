"""The variant that a user of `dropout` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEWEST = 128
"""H200: 16 elements take 1.14 us in cuda_philox and 1.18 in triton_rand, 64 take 1.25 and 1.60, 124 take 1.51 and 1.62; 2,677
take 2.10 and 1.77."""
FEW = 2**18
"""H200: 2^16 elements take 1.9 us in triton_rand and 2.2 in cuda_philox; 163,229 take 2.16 and
2.27; 275,231 take 2.40 and 2.34; 2^27 take 403 and 125."""


def dropout(problem: Problem, card: Card) -> tuple[str, ...]:
    """Philox of CUDA C++, which uses all 128 bits of a call; Triton's generator for 129 to 2^18 elements.

    >>> from kernelviz.ops.catalog.best import H200
    >>> [dropout(Problem(op="dropout", sizes={"n": n}, dtype="bf16"), H200)[0] for n in (64, 65536, 1048576)]
    ['cuda_philox', 'triton_rand', 'cuda_philox']
    """
    return ("triton_rand", "cuda_philox") if FEWEST < problem.sizes["n"] <= FEW else ("cuda_philox", "triton_philox")
