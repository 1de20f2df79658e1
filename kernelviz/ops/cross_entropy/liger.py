"""Liger's cross-entropy kernel, bound to tensors. Without the host's checks of the labels, which wait for the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor


def bind_loss(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses only; raises BadField for inputs that are not contiguous."""
    run, loss_M = _kernel(logits_MV, labels_M, gradients=False)

    def launch() -> Tensor:
        run()
        return loss_M

    return launch


def bind_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses, and their gradient in place of the logits; raises BadField for inputs that are not contiguous."""
    run, loss_M = _kernel(logits_MV, labels_M, gradients=True)

    def launch() -> tuple[Tensor, Tensor]:
        run()
        return loss_M, logits_MV

    return launch


def _kernel(logits_MV: Tensor, labels_M: Tensor, *, gradients: bool) -> tuple[Callable[[], None], Tensor]:
    import torch
    from liger_kernel.ops.cross_entropy import MAX_FUSED_SIZE, liger_cross_entropy_kernel
    from liger_kernel.utils import infer_device_arch

    require_contiguous(logits_MV=logits_MV, labels_M=labels_M)
    m, v = logits_MV.shape
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    block = min(MAX_FUSED_SIZE, 1 << (v - 1).bit_length())
    # As cross_entropy_forward of liger-kernel 0.8.5 chooses them.
    few = logits_MV.element_size() == 2 and infer_device_arch().startswith("blackwell")

    def run() -> None:
        liger_cross_entropy_kernel[(m,)](
            X_ptr=logits_MV,
            X_stride=v,
            Y_ptr=labels_M,
            Y_stride=1,
            weight_ptr=None,
            loss_ptr=loss_M,
            z_loss_ptr=None,
            loss_stride=1,
            token_accuracy_ptr=None,
            token_accuracy_stride=0,
            predicted_tokens_ptr=None,
            predicted_tokens_stride=0,
            n_cols=v,
            n_non_ignore=m,
            sum_non_ignore_weight=m,
            weight_sum=0.0,
            ignore_index=-100,
            lse_square_scale=0.0,
            label_smoothing=0.0,
            reduction="none",
            softcap=None,
            RETURN_Z_LOSS=False,
            RETURN_TOKEN_ACCURACY=False,
            RETURN_PREDICTED_TOKENS=False,
            BLOCK_SIZE=block,
            HAS_WEIGHT=False,
            HAS_SOFTCAPPING=False,
            HAS_GRADIENTS=gradients,
            num_warps=8 if few else 32,
        )

    return run, loss_M
