"""Heads of attention: query heads that share keys, and the head dimensions that kernels take. Imports no torch."""

from __future__ import annotations

from kernelviz.core.errors import BadField, BadSize
from kernelviz.ops.catalog.tensors import Sizes

HEAD_DIMENSIONS = (64, 128, 256)
"""That the kernels written here take."""


def group_of(query_heads: int, key_heads: int) -> int:
    """Query heads that share a key and value head: query head h uses key head h // group.

    Errors: BadSize where the query heads are no multiple of the key heads.

    >>> group_of(64, 8)
    8
    """
    if query_heads % key_heads:
        raise BadSize("hq", query_heads, f"query heads must be a multiple of the {key_heads} key heads (size hk)")
    return query_heads // key_heads


def check_heads(sizes: Sizes) -> None:
    """Errors: BadSize where the query heads are no multiple of the key heads."""
    group_of(sizes["hq"], sizes["hk"])


def require_head_dimension(dimension: int) -> None:
    """Errors: BadField for a head dimension that the kernels written here do not take."""
    if dimension not in HEAD_DIMENSIONS:
        dimensions = ", ".join(map(str, HEAD_DIMENSIONS))
        raise BadField("size d", dimension, f"this kernel takes head dimensions of {dimensions}; choose torch_eager")
