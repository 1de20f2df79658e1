"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""

SHORT_CONTEXT = 64
"""Tokens that a program of `triton_heads` takes in at most eight tiles."""
ONE_TILE = 16
"""Tokens that a program takes at once, however few programs there are. H200: one token of one key head of 64, for 4 query heads,
takes 2.15 us by a program for each query head, 2.45 for each key head, and 2.89 on tensor cores."""
WIDE_HEAD, SHORT_WIDE_CONTEXT = 256, 256
"""Elements of a head, and tokens of a context that is short for such heads. H200: 16 contexts of 153 tokens with 4 key heads of
256 take 7.72 us by programs of Triton, and 17.9 on tensor cores."""
FEW_TOKENS, NARROW_HEAD = 4096, 64
"""Of all contexts and key heads, and elements of a head. H200: 400 tokens of 4 key heads of 64 take 5.07 us in `triton_split` and
6.08 on tensor cores."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores for up to 16 query heads of a key head, and Triton's scheduled kernel for more, which tensor cores
    do not take; but a program of Triton for each query or key head for contexts of at most 16 tokens, and for those of at most
    64 tokens (256 of heads of 256) of more key heads than a third of the multiprocessors: for each query head where heads are of
    64 and a key head has one or two of them, or where there are few; and Triton's split kernel for up to 4096 tokens of heads of
    64 in longer contexts.

    H200: 2677 contexts of 11 tokens with 32 query heads of 4 key heads of 256 take 109 us by programs of Triton, and 236 on
    tensor cores; 5 contexts of 39 tokens with 8 key heads of 256 take 5.58 and 4.18. 81,861 contexts of one token with 4 heads of
    128 take 1328 us by programs for each key head, and 1758 by those for each query head, of which there are as many.

    A product on tensor cores has 16 rows, which one or two query heads leave empty, and a short context hides neither that nor
    the start of its pipeline.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 16, "l": 8192, "hq": 64, "hk": 8, "d": 128}
    >>> short = {"b": 28056, "l": 14, "hq": 1, "hk": 1, "d": 64}
    >>> few = {"b": 1, "l": 400, "hq": 32, "hk": 4, "d": 64}
    >>> wide = {"b": 81861, "l": 1, "hq": 4, "hk": 4, "d": 128}
    >>> one = {"b": 1, "l": 1, "hq": 4, "hk": 1, "d": 64}
    >>> problems = [Problem(op="attention_decode", sizes=s, dtype="bf16") for s in (sizes, short, few, wide, one)]
    >>> [decode(problem, H200)[0] for problem in problems]
    ['cuda_mma', 'triton_heads', 'triton_split', 'triton_packed', 'triton_heads']
    """
    s = problem.sizes
    query_heads, key_heads, length = s["hq"], s["hk"], s["l"]
    on_tensor_cores = query_heads <= MOST_GROUP * key_heads
    usual = "cuda_mma" if on_tensor_cores else "triton_scheduled"
    short = length <= (SHORT_CONTEXT if s["d"] < WIDE_HEAD else SHORT_WIDE_CONTEXT)
    many = 3 * s["b"] * key_heads > card.multiprocessors
    if on_tensor_cores and (length <= ONE_TILE or (short and many)):
        by_query_head = s["d"] <= NARROW_HEAD and (query_heads <= 2 * key_heads or not many)
        return ("triton_heads" if by_query_head else "triton_packed", usual)
    if length > SHORT_CONTEXT and s["b"] * key_heads * length <= FEW_TOKENS and s["d"] <= NARROW_HEAD:
        return ("triton_split", usual)
    return ("cuda_mma", "triton_scheduled") if on_tensor_cores else ("triton_scheduled",)
