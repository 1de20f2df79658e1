"""Names of variants as people read them."""


def variant_words(variant: str) -> str:
    """The name as people read it.

    >>> variant_words("triton_block")
    'triton block'
    """
    return variant.replace("_", " ").strip() or variant
