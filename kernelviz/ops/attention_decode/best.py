"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""

SHORT_CONTEXT = 64
"""Tokens that a program of `triton_heads` takes in at most eight tiles."""
WIDE_HEAD, SHORT_WIDE_CONTEXT = 256, 256
"""Elements of a head, and tokens of a context that is short for such heads. H200: 16 contexts of 153 tokens with 4 key heads of
256 take 7.72 us by programs of Triton, and 17.9 on tensor cores."""
FEW_TOKENS, NARROW_HEAD = 4096, 64
"""Of all contexts and key heads, and elements of a head. H200: 400 tokens of 4 key heads of 64 take 5.07 us in `triton_split` and
6.08 on tensor cores."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores for up to 16 query heads of a key head, and Triton's scheduled kernel for more, which tensor cores
    do not take; but for contexts of at most 64 tokens (256 of heads of 256) and more key heads than a third of the
    multiprocessors, a program of Triton for each query head where a key head has one or two of them, and for each key head where
    it has 3 to 16; and Triton's split kernel for up to 4096 tokens of heads of 64 in longer contexts.

    H200: 2677 contexts of 11 tokens with 32 query heads of 4 key heads of 256 take 109 us by programs of Triton, and 236 on
    tensor cores; 5 contexts of 39 tokens with 8 key heads of 256 take 5.58 and 4.18.

    A product on tensor cores has 16 rows, which one or two query heads leave empty, and a short context hides neither that nor
    the start of its pipeline.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 16, "l": 8192, "hq": 64, "hk": 8, "d": 128}
    >>> short = {"b": 4096, "l": 14, "hq": 1, "hk": 1, "d": 128}
    >>> few = {"b": 1, "l": 400, "hq": 32, "hk": 4, "d": 64}
    >>> [decode(Problem(op="attention_decode", sizes=one, dtype="bf16"), H200)[0] for one in (sizes, short, few)]
    ['cuda_mma', 'triton_heads', 'triton_split']
    """
    s = problem.sizes
    query_heads, key_heads, length = s["hq"], s["hk"], s["l"]
    on_tensor_cores = query_heads <= MOST_GROUP * key_heads
    usual = "cuda_mma" if on_tensor_cores else "triton_scheduled"
    short = length <= (SHORT_CONTEXT if s["d"] < WIDE_HEAD else SHORT_WIDE_CONTEXT)
    many = 3 * s["b"] * key_heads > card.multiprocessors
    if short and many and on_tensor_cores:
        return ("triton_heads" if query_heads <= 2 * key_heads else "triton_packed", usual)
    if length > SHORT_CONTEXT and s["b"] * key_heads * length <= FEW_TOKENS and s["d"] <= NARROW_HEAD:
        return ("triton_split", usual)
    return ("cuda_mma", "triton_scheduled") if on_tensor_cores else ("triton_scheduled",)
