"""Names of variants as people read them."""

from __future__ import annotations


def variant_words(variant: str) -> str:
    """The name as people read it.

    >>> variant_words("triton_block")
    'triton block'
    """
    return variant.replace("_", " ").strip() or variant
