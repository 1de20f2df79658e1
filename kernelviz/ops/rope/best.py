"""The variant that a user of `rope` gets."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card, whole_vectors

FEW_PAIRS = 2**20
"""Of all heads, up to which CUDA C++ is chosen also where it rotates narrower vectors: an estimate. H200: 83,600 pairs in halves
of 5 take 2.24 us with divisions by sizes that are no constants, and 2.20 in Triton; since then they are constants."""


def rope(problem: Problem, card: Card) -> tuple[str, ...]:
    """The CUDA C++ that leaves the inputs as they are, and Triton for more than 2^20 pairs where half a head is no whole 16-byte
    vectors.

    H200: 9 tokens of 7 heads of 204 fp32 take 1.79 us in CUDA C++ and 2.05 in Triton, 4 tokens of 12 heads of 246 take 1.78 and
    2.25.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"t": 16384, "hq": 32, "hk": 8}
    >>> [rope(Problem(op="rope", sizes={**sizes, "p": p}, dtype="bf16"), H200)[0] for p in (64, 5)]
    ['cuda_vec16', 'triton_token']
    >>> rope(Problem(op="rope", sizes={"t": 9, "hq": 5, "hk": 2, "p": 102}, dtype="fp32"), H200)[0]
    'cuda_vec16'
    """
    sizes = problem.sizes
    pairs = sizes["t"] * (sizes["hq"] + sizes["hk"]) * sizes["p"]
    by_vectors = whole_vectors(problem, "p") or pairs <= FEW_PAIRS
    return ("cuda_vec16", "triton_token") if by_vectors else ("triton_token", "cuda_vec16")
