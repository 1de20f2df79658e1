"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores; Triton's scheduled kernel for more than 16 query heads of one key head, which that does
    not take.

    >>> from kernelviz.ops.catalog.best import H200
    >>> decode(Problem(op="attention_decode", sizes={"b": 16, "l": 8192, "hq": 64, "hk": 8, "d": 128}, dtype="bf16"), H200)[0]
    'cuda_mma'
    """
    fits = problem.sizes["hq"] <= MOST_GROUP * problem.sizes["hk"]
    return ("cuda_mma", "triton_scheduled") if fits else ("triton_scheduled",)
