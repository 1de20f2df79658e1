"""`w4a16_matmul` with torch: the weights become a matrix of 16 bits in every call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.w4a16_matmul.layout import dequantised

if TYPE_CHECKING:
    from torch import Tensor


def dequantise_and_multiply(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor) -> Tensor:
    """The product (M, N) by `torch.mm`."""
    return x_MK @ dequantised(w_NGB, s_GN, z_GH, x_MK.shape[1]).t()
