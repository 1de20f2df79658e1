"""The op `paged_attention_decode`: its cost and its variants."""

from __future__ import annotations

from dataclasses import replace

from kernelviz.core.problem import Cost
from kernelviz.ops.attention_decode import op as contiguous
from kernelviz.ops.attention_decode.paged_variants import PAGED_VARIANTS
from kernelviz.ops.attention_decode.reference import paged_bound, paged_reference
from kernelviz.ops.attention_decode.sizes import PAGE, pages
from kernelviz.ops.catalog.tensors import Blocks, Product, Sizes, TensorSpec

_PAGES_OF_SEQUENCE = Blocks("l", PAGE)
_PAGES = Product(("b", _PAGES_OF_SEQUENCE))
_NUMBER_BYTES = 4


def cost(sizes: Sizes, itemsize_bytes: int) -> Cost:
    """That of `attention_decode`, and the block table read once. The rest of the last page of a sequence is not read.

    >>> cost({"b": 2, "l": 1000, "hq": 64, "hk": 8, "d": 128}, 2)
    Cost(work_flop=65536000, read_bytes=8225272, written_bytes=32768)
    """
    plain = contiguous.cost(sizes, itemsize_bytes)
    table_bytes = _NUMBER_BYTES * sizes["b"] * pages(sizes["l"])
    return Cost(work_flop=plain.work_flop, read_bytes=plain.read_bytes + table_bytes, written_bytes=plain.written_bytes)


PAGED_ATTENTION_DECODE = replace(
    contiguous.ATTENTION_DECODE,
    name="paged_attention_decode",
    summary="Attention of one new token for each sequence, over a KV cache in pages of 16 tokens in random order",
    formula="o = softmax(q kᵀ / √d) v, token t in page table[t // 16]",
    # The table is a random permutation of all pages, so no two sequences share one.
    inputs=(
        TensorSpec(name="q_BHD", axes=("b", "hq", "d")),
        TensorSpec(name="k_pages_NPHD", axes=(_PAGES, PAGE, "hk", "d"), as_stored=True),
        TensorSpec(name="v_pages_NPHD", axes=(_PAGES, PAGE, "hk", "d"), as_stored=True),
        TensorSpec(name="table_BN", axes=("b", _PAGES_OF_SEQUENCE), dtype="int32", below=_PAGES),
    ),
    cost=cost,
    reference=paged_reference,
    bound=paged_bound,
    first=tuple(v.name for v in PAGED_VARIANTS),
    variants=PAGED_VARIANTS,
)
