"""Liger's softmax kernels, bound to tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.liger_rows import require_rows

if TYPE_CHECKING:
    from torch import Tensor


def bind_liger(x_MN: Tensor) -> Launch:
    """Raises BadField for a matrix that is not contiguous, or has rows of more than 65536 elements."""
    from liger_kernel.ops.softmax import _softmax_forward

    require_rows(x_MN=x_MN)

    def launch() -> Tensor:
        y_MN: Tensor = _softmax_forward(x_MN)[0]
        return y_MN

    return launch


def bind_liger_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward kernel after the forward one, which writes to the same memory each time; errors as `bind_liger`."""
    import torch
    from liger_kernel.ops.softmax import _softmax_backward, _softmax_forward
    from liger_kernel.ops.utils import calculate_settings

    require_rows(x_MN=x_MN, dy_MN=dy_MN)
    y_MN = torch.empty_like(x_MN)
    block, warps = calculate_settings(x_MN.shape[1])

    def forward() -> None:
        y_MN.copy_(_softmax_forward(x_MN)[0])

    def launch() -> Tensor:
        dx_MN: Tensor = _softmax_backward(dy_MN, y_MN, block, warps, False)
        return dx_MN

    return Staged(forward, launch)
