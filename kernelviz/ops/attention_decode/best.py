"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""
STEP_ELEMENTS = 8192
"""Of the keys of a context that a program of `triton_packed` computes in one step (`tiles.py`). H200: 35 contexts of 100 tokens
with 4 key heads of 64 take 4.41 us so, and 5.84 on tensor cores; in more steps 15 of 107 with one of 128 5.51 and 3.92."""
WAVES, LONG_CONTEXT = 8, 256
"""Programs a multiprocessor beyond which contexts of at most so many tokens have one for each key head, too. H200: 19,821 of 59
with a head of 256 take 370 us so, 772 on tensor cores, 2,192 of 152 with 4 of 128 171 and 204."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores, and Triton's scheduled kernel for more than 16 query heads of a key head; but, up to 16, a
    program of Triton for each key head for contexts whose keys are at most 8192 elements, or of at most 256 tokens for more than
    eight such programs a multiprocessor.

    A product on tensor cores has 16 rows, which one or two query heads leave empty, and a short context hides neither that nor
    the start of its pipeline. H200: 9 contexts of 145,045 tokens with a head of 256 take 292 us on tensor cores and 301 in
    Triton, 21,336 of one token with 8 heads of 256 2301, and 770 by a program for each key head.

    >>> from kernelviz.ops.catalog.best import H200
    >>> cases = ((16, 8192, 64, 8, 128), (1, 8192, 64, 2, 128), (1, 1, 4, 1, 64), (28_056, 140, 1, 1, 128))
    >>> problems = [Problem(op="attention_decode", sizes=dict(zip(("b", "l", "hq", "hk", "d"), c)), dtype="bf16") for c in cases]
    >>> [decode(problem, H200)[0] for problem in problems]
    ['cuda_mma', 'triton_scheduled', 'triton_packed', 'triton_packed']
    """
    s = problem.sizes
    if s["hq"] > MOST_GROUP * s["hk"]:
        return ("triton_scheduled",)
    many = s["b"] * s["hk"] > WAVES * card.multiprocessors
    if s["l"] * s["d"] <= STEP_ELEMENTS or (many and s["l"] <= LONG_CONTEXT):
        return ("triton_packed", "cuda_mma", "triton_scheduled")
    # A program for each key head may be faster for few contexts: H200, 8 of 440 tokens with 8 of 64 take 7.64 and 6.75 us.
    return ("cuda_mma", "triton_packed", "triton_scheduled", "triton_split")
