"""The variants of attention, in ladder order."""

from __future__ import annotations

from kernelviz.ops.attention.variants_torch import torch_variants
from kernelviz.ops.attention.variants_triton import triton_variants
from kernelviz.ops.attention.variants_wgmma import wgmma_variants
from kernelviz.ops.catalog.variant import Variant


def ladder(*, causal: bool) -> tuple[Variant, ...]:
    """The variants, which see all keys, or with `causal` those up to the position of a query."""
    composite, eager, compiled, *libraries = torch_variants(causal=causal)
    own = (*triton_variants(causal=causal), *wgmma_variants(causal=causal))
    return (composite, eager, compiled, *own, *libraries)
