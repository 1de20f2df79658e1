"""Liger's fused linear cross-entropy, bound to tensors: its kernel and its chunks, without its count of the labels, for which the
host waits for the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.linear_cross_entropy.chunks import add_product, chunks

if TYPE_CHECKING:
    from torch import Tensor


def rows_of_chunk(m: int, h: int, v: int) -> int:
    """Rows of a chunk as `fused_linear_cross_entropy_forward` of liger-kernel 0.8.5 chooses them, so that logits need about as
    much memory as x.

    >>> rows_of_chunk(8192, 4096, 128256), rows_of_chunk(3, 4096, 128256)
    (256, 1)
    """
    parts = -(-v // h)
    return min(m, 1 << (-(-m // parts) - 1).bit_length())


def bind_loss(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Launch:
    """The losses only; raises BadField for inputs that are not contiguous."""
    import torch

    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M)
    (m, h), v = x_MH.shape, w_VH.shape[0]
    rows = rows_of_chunk(m, h, v)
    logits_CV = torch.empty((rows, v), dtype=x_MH.dtype, device=x_MH.device)
    loss_M = torch.empty(m, dtype=x_MH.dtype, device=x_MH.device)

    def launch() -> Tensor:
        for chunk in chunks(m, rows):
            part_CV = logits_CV[: chunk.stop - chunk.start]
            torch.mm(x_MH[chunk], w_VH.t(), out=part_CV)
            _row_kernel(part_CV, labels_M[chunk], loss_M[chunk], m, gradients=False)
        return loss_M

    return launch


def bind_backward(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """The gradients of x and w, as for reduction="none" with accum_dtype=torch.float32; raises BadField if not contiguous."""
    import torch

    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M, dloss_M=dloss_M)
    (m, h), v = x_MH.shape, w_VH.shape[0]
    rows = rows_of_chunk(m, h, v)
    logits_CV = torch.empty((rows, v), dtype=x_MH.dtype, device=x_MH.device)
    loss_M = torch.empty(m, dtype=torch.float32, device=x_MH.device)
    dx_MH = torch.empty_like(x_MH)
    total_VH = torch.empty(w_VH.shape, dtype=torch.float32, device=w_VH.device)
    dw_VH = total_VH if w_VH.dtype == torch.float32 else torch.empty_like(w_VH)

    def launch() -> Tensors:
        total_VH.zero_()
        for chunk in chunks(m, rows):
            part_CV = logits_CV[: chunk.stop - chunk.start]
            torch.mm(x_MH[chunk], w_VH.t(), out=part_CV)
            _row_kernel(part_CV, labels_M[chunk], loss_M[chunk], m, gradients=True)
            dz_CV = part_CV * dloss_M[chunk, None]
            torch.mm(dz_CV, w_VH, out=dx_MH[chunk])
            add_product(total_VH, dz_CV.t(), x_MH[chunk])
        if dw_VH is not total_VH:
            dw_VH.copy_(total_VH)
        return dx_MH, dw_VH

    return launch


def _row_kernel(logits_CV: Tensor, labels_C: Tensor, loss_C: Tensor, m: int, *, gradients: bool) -> None:
    """Liger's kernel over rows of logits, which writes the gradient of each logit in its place if `gradients`."""
    from liger_kernel.ops.cross_entropy import MAX_FUSED_SIZE, liger_cross_entropy_kernel

    v = logits_CV.shape[1]
    options: dict[str, Any] = {
        "X_ptr": logits_CV,
        "X_stride": v,
        "Y_ptr": labels_C,
        "Y_stride": 1,
        "weight_ptr": None,
        "loss_ptr": loss_C,
        "z_loss_ptr": None,
        "loss_stride": 1,
        "token_accuracy_ptr": None,
        "token_accuracy_stride": 0,
        "predicted_tokens_ptr": None,
        "predicted_tokens_stride": 0,
        "n_cols": v,
        "n_non_ignore": m,
        "sum_non_ignore_weight": m,
        "weight_sum": 0.0,
        "ignore_index": -100,
        "lse_square_scale": 0.0,
        "label_smoothing": 0.0,
        "reduction": "none",
        "softcap": None,
        "RETURN_Z_LOSS": False,
        "RETURN_TOKEN_ACCURACY": False,
        "RETURN_PREDICTED_TOKENS": False,
        "BLOCK_SIZE": min(MAX_FUSED_SIZE, 1 << (v - 1).bit_length()),
        "HAS_WEIGHT": False,
        "HAS_SOFTCAPPING": False,
        "HAS_GRADIENTS": gradients,
        "num_warps": 32,
    }
    liger_cross_entropy_kernel[(logits_CV.shape[0],)](**options)
