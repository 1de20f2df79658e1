"""The gain that a source reports for the idea of a variant, in text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernelviz.ops.catalog.variant import PublishedGain


def describe_published_gain(gain: PublishedGain | None) -> str:
    """The gain with its GPU and its source; empty if none was published.

    >>> from kernelviz.ops import PublishedGain
    >>> describe_published_gain(PublishedGain(factor=1.5, over="cuda_naive", gpu="RTX A6000", source="example.org"))
    'published gain: 1.50× over cuda_naive (RTX A6000, example.org)'
    >>> describe_published_gain(None)
    ''
    """
    if gain is None:
        return ""
    return f"published gain: {gain.factor:.2f}× over {gain.over} ({gain.gpu}, {gain.source})"
