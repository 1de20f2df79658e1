"""The variant of `row_sum` that was published with wrong results. It runs only if it is named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="triton", needs=("triton", "cuda"), dtypes=("fp32",), only_when_named=True)
def triton_published(x_MN: Tensor) -> Launch:
    """Published as optimal (source 3). Wrong beyond 128 columns: each block of columns overwrites the sums of the others."""
    from kernelviz.ops.row_reduction import triton_published as kernels

    return kernels.bind_published(x_MN)
