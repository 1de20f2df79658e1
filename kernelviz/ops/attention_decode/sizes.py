"""Pages of a paged KV cache. Imports no torch."""

from __future__ import annotations

PAGE = 16
"""Tokens of a page of the paged cache, as vLLM's default."""


def pages(length: int) -> int:
    """Pages of a sequence; the last may be filled in part.

    >>> pages(1), pages(16), pages(17)
    (1, 1, 2)
    """
    return -(-length // PAGE)
