"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""

SHORT_CONTEXT = 64
"""Tokens that a program of `triton_heads` takes in at most eight tiles."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores for up to 16 query heads of a key head, and Triton's scheduled kernel for more, which tensor cores
    do not take; but for contexts of at most 64 tokens, a program of Triton for each query head where a key head has one or two of
    them, and for each key head where it has 3 to 16.

    H200: 2677 contexts of 11 tokens with 32 query heads of 4 key heads of 256 take 109 us by programs of Triton, and 236 on
    tensor cores.

    A product on tensor cores has 16 rows, which one or two query heads leave empty, and a short context hides neither that nor
    the start of its pipeline.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 16, "l": 8192, "hq": 64, "hk": 8, "d": 128}
    >>> short = {"b": 4096, "l": 14, "hq": 1, "hk": 1, "d": 128}
    >>> [decode(Problem(op="attention_decode", sizes=one, dtype="bf16"), H200)[0] for one in (sizes, short)]
    ['cuda_mma', 'triton_heads']
    """
    query_heads, key_heads = problem.sizes["hq"], problem.sizes["hk"]
    if problem.sizes["l"] <= SHORT_CONTEXT and query_heads <= MOST_GROUP * key_heads:
        return ("triton_heads" if query_heads <= 2 * key_heads else "triton_packed", "cuda_mma")
    return ("cuda_mma", "triton_scheduled") if query_heads <= MOST_GROUP * key_heads else ("triton_scheduled",)
