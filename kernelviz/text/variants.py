"""Names of variants as people read them."""


def format_variant(variant: str) -> str:
    """The name as people read it.

    >>> format_variant("triton_block")
    'triton block'
    """
    return variant.replace("_", " ").strip() or variant
