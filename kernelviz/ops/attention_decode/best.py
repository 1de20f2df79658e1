"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""

SHORT_CONTEXT = 64
"""Tokens that a program of `triton_heads` takes in at most eight tiles, and `mma.cu` in one."""
ONE_TILE = 16
"""Tokens that a program takes at once, however few programs there are. H200: one token of one key head of 64, for 4 query heads,
takes 2.15 us by a program for each query head, 2.45 for each key head, and 2.89 on tensor cores."""
MANY, WAVES = 2, 8
"""Programs a multiprocessor from which on short contexts have one for each key head, and contexts of at most LONG_CONTEXT tokens.
H200: 64 of 40 tokens with heads of 256 take 5.7 us so, 4.4 on tensor cores, 25,232 of 92 with heads of 64 236 and 304, 16,384 of
128 with heads of 64 134 and 236, 3,520 of 152 with heads of 256 the same in both."""
LONG_CONTEXT = 256
FEW_TOKENS = {64: 4096, 256: 8192}
"""Of all contexts and key heads, by elements of a head, up to which Triton's split kernel is chosen. H200: 400 tokens of 4 key
heads of 64 take 5.07 us so and 6.08 on tensor cores, 2,571 of 2 7.13 and 6.62; heads of 256: 6,137 of one 11.9 and 18.3, 6
contexts of 1,658 of 2 12.8 and 10.9."""
NARROW_HEAD = 64
"""Elements of a head."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores for up to 16 query heads of a key head, and Triton's scheduled kernel for more, which tensor cores
    do not take; but a program of Triton for each key head for contexts of at most 16 tokens, for those of at most 64 of more key
    heads than two a multiprocessor, and of at most 256 of more than eight; and for each query head for contexts of at most 16
    tokens of fewer key heads of 64; and Triton's split kernel for longer contexts of up to 4096 tokens of all key heads of 64, or
    8192 of those of 256.

    H200: 2677 contexts of 11 tokens with 32 query heads of 4 key heads of 256 take 109 us by programs of Triton, and 236 on
    tensor cores; 5 contexts of 39 tokens with 8 key heads of 256 take 5.58 and 4.18. 81,861 contexts of one token with 4 heads of
    128 take 1328 us by programs for each key head, and 1758 by those for each query head, of which there are as many.

    That programs for each key head are the best of many, too, is inferred from their shared memory, of which they have less since
    3,883 contexts of 5 tokens with 8 key heads of 64 took 263 us so, and 116 by a program for each query head.

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
    ['cuda_mma', 'triton_packed', 'triton_split', 'triton_packed', 'triton_heads']
    """
    s = problem.sizes
    query_heads, key_heads, length = s["hq"], s["hk"], s["l"]
    on_tensor_cores = query_heads <= MOST_GROUP * key_heads
    usual = "cuda_mma" if on_tensor_cores else "triton_scheduled"
    programs, of_head = s["b"] * key_heads, s["d"]
    many = programs > MANY * card.multiprocessors
    long_and_many = length <= LONG_CONTEXT and programs > WAVES * card.multiprocessors
    if on_tensor_cores and (length <= ONE_TILE or (many and length <= SHORT_CONTEXT) or long_and_many):
        by_query_head = of_head <= NARROW_HEAD and not many
        return ("triton_heads" if by_query_head else "triton_packed", usual)
    if length > SHORT_CONTEXT and programs * length <= FEW_TOKENS.get(of_head, 0):
        return ("triton_split", usual)
    return ("cuda_mma", "triton_scheduled") if on_tensor_cores else ("triton_scheduled",)
