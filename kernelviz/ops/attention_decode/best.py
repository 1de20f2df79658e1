"""The variant that a user of decode attention gets, with a contiguous or a paged cache."""

from __future__ import annotations

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.best import Card

MOST_GROUP = 16
"""Query heads of a key head that `mma.cu` takes: two products have so many rows."""

STEP_ELEMENTS = 8192
"""Of the keys of a context that a program of `triton_packed` computes in one step (`tiles.py`). H200: 35 contexts of 100 tokens
with 4 key heads of 64 take 4.41 us so, and 5.84 on tensor cores, one of 19 with 4 of 128, paged, 3.41 and 3.78; in more steps 15
of 107 with one of 128 take 5.51 and 3.92, 5 of 39 with 8 of 256 5.58 and 4.18."""
WAVES, LONG_CONTEXT = 8, 256
"""Programs a multiprocessor beyond which contexts of at most so many tokens have one for each key head. H200: 25,232 of 92 with
heads of 64 take 236 us so, 304 on tensor cores, 8,768 of 152 with heads of 128 171 and 204, 3,520 of 152 with heads of 256 the
same in both."""
WIDE_HEAD = 256
"""Elements of a head of so many short contexts that Triton's scheduled kernel takes from pages. H200: 1,024 of 2 tokens with 2
key heads take 23.9 us so, and 25.6 by a program for each key head, 83,417 of 15 with 4 3,210 and 3,478, 32,768 of 2 with 2 1,428
and 3,282; 44,147 of 4 with one of 128 364 and 361."""
SHORT_ELEMENTS = 2**14
"""Of the keys of a context up to which `mma.cu` computes them in one or two tiles; of more it adds the parts of several blocks.
H200: 134 tokens of a key head of 64 take 3.22 us so, and 5.16 by Triton's split kernel."""
FEW_TOKENS = {64: 4096, 256: 8192}
"""Of all contexts and key heads, by elements of a head, up to which Triton's split kernel is chosen. H200: 400 tokens of 4 key
heads of 64 take 5.07 us so and 6.08 on tensor cores, 2,571 of 2 7.13 and 6.62; heads of 256: 6,137 of one 11.9 and 18.3, 6
contexts of 1,658 of 2 12.8 and 10.9."""


def decode(problem: Problem, card: Card) -> tuple[str, ...]:
    """CUDA C++ on tensor cores for up to 16 query heads of a key head, but a program of Triton for each key head for contexts
    whose keys are at most 8192 elements, and for those of at most 256 tokens of more key heads than eight a multiprocessor;
    Triton's scheduled kernel for more query heads, which tensor cores do not take, and for contexts in pages that are both so
    short and so many, with heads of 256; and Triton's split kernel for other contexts whose keys are more than 16384 elements, if
    all are at most 4096 tokens of key heads of 64, or 8192 of those of 256.

    H200: 19 contexts of 5 tokens with 32 query heads of 4 key heads of 64 take 2.65 us by a program for each key head, 4.26 for
    each query head, and 3.38 on tensor cores; 256 of 32 tokens with 4 key heads of 256 13.8 and 26.8 on tensor cores, and 21,336
    of one token with 8 of 256 770 and 2301.

    A product on tensor cores has 16 rows, which one or two query heads leave empty, and a short context hides neither that nor
    the start of its pipeline.

    >>> from kernelviz.ops.catalog.best import H200
    >>> sizes = {"b": 16, "l": 8192, "hq": 64, "hk": 8, "d": 128}
    >>> short = {"b": 28056, "l": 14, "hq": 1, "hk": 1, "d": 64}
    >>> few = {"b": 1, "l": 400, "hq": 32, "hk": 4, "d": 64}
    >>> wide = {"b": 81861, "l": 1, "hq": 4, "hk": 4, "d": 128}
    >>> one = {"b": 1, "l": 1, "hq": 4, "hk": 1, "d": 64}
    >>> problems = [Problem(op="attention_decode", sizes=s, dtype="bf16") for s in (sizes, short, few, wide, one)]
    >>> pages = {"b": 1024, "l": 2, "hq": 16, "hk": 2, "d": 256}
    >>> problems.append(Problem(op="paged_attention_decode", sizes=pages, dtype="bf16"))
    >>> [decode(problem, H200)[0] for problem in problems]
    ['cuda_mma', 'triton_packed', 'triton_split', 'triton_packed', 'triton_packed', 'triton_scheduled']
    """
    s = problem.sizes
    query_heads, key_heads, length = s["hq"], s["hk"], s["l"]
    on_tensor_cores = query_heads <= MOST_GROUP * key_heads
    usual = "cuda_mma" if on_tensor_cores else "triton_scheduled"
    programs, of_head = s["b"] * key_heads, s["d"]
    short, many = length * of_head <= STEP_ELEMENTS, programs > WAVES * card.multiprocessors
    if short and many and of_head == WIDE_HEAD and problem.op == "paged_attention_decode":
        return ("triton_scheduled", "triton_packed")
    if on_tensor_cores and (short or (many and length <= LONG_CONTEXT)):
        return ("triton_packed", usual)
    if length * of_head > SHORT_ELEMENTS and programs * length <= FEW_TOKENS.get(of_head, 0):
        return ("triton_split", usual)
    return ("cuda_mma", "triton_scheduled") if on_tensor_cores else ("triton_scheduled",)
