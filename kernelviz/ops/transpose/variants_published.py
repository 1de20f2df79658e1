"""The variant of `transpose` that was published with wrong results. It runs only if it is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="triton", needs=("triton", "cuda"), dtypes=("fp32",), only_when_named=True)
def triton_published(x_MN: Tensor) -> Launch:
    """Published as cache-friendly (source 3). Wrong unless 32 divides n: it never writes what comes after the last whole tile."""
    from kernelviz.ops.transpose import triton_published as kernels

    return kernels.bind_published(x_MN)
