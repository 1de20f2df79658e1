"""The variant that a user of `rope` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

FEWEST_PAIRS = 128
"""Of all heads, up to which Triton is chosen: an estimate. H200: 2 pairs of fp16 take 1.19 us in Triton and 1.27 in CUDA C++, 12
of fp32 1.14 and 1.26; 6,426 take 1.61 and 1.44."""


def rope(problem: Problem, card: Card) -> tuple[str, ...]:
    """The CUDA C++ that leaves the inputs as they are; Triton for at most 128 pairs.

    H200: 4 tokens of 12 heads of 246 fp32 take 1.44 us in CUDA C++ and 1.74 in Triton; 16,384 tokens of 40 heads of 10 bf16,
    whose halves are no whole vectors, take 11.9 and 14.3.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"t": 16384, "hq": 32, "hk": 8}
    >>> [rope(Problem(op="rope", sizes={**sizes, "p": p}, dtype="bf16"), H200)[0] for p in (64, 5)]
    ['cuda_vec16', 'cuda_vec16']
    >>> rope(Problem(op="rope", sizes={"t": 2, "hq": 1, "hk": 1, "p": 3}, dtype="fp32"), H200)[0]
    'triton_token'
    """
    sizes = problem.sizes
    pairs = sizes["t"] * (sizes["hq"] + sizes["hk"]) * sizes["p"]
    return ("triton_token", "cuda_vec16") if pairs <= FEWEST_PAIRS else ("cuda_vec16", "triton_token")
