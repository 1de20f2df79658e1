"""The kernels of the package cut-cross-entropy, bound to tensors, without its search for ignored labels, for which the host waits
for the GPU."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor


def bind_loss(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Launch:
    """The losses; raises BadField for inputs that are not contiguous."""
    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M)
    # By name, because the package has no types and need not be installed.
    whole = importlib.import_module("cut_cross_entropy.cce_lse_forward").cce_lse_forward_kernel
    negative_dot = importlib.import_module("cut_cross_entropy.indexed_dot").indexed_neg_dot_forward_kernel

    def launch() -> Tensor:
        whole_M = whole(x_MH, w_VH)
        loss_M: Tensor = negative_dot(x_MH, w_VH, labels_M, out_dtype=whole_M.dtype).add_(whole_M)
        return loss_M.to(x_MH.dtype)

    return launch
