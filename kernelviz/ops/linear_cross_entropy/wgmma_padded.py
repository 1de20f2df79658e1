"""The wgmma kernel of `linear_cross_entropy` for any hidden size: x and w are copied to rows that TMA can address."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_padding import RowCopy, padded, row_copy
from kernelviz.ops.linear_cross_entropy import wgmma
from kernelviz.ops.linear_cross_entropy.wgmma import Options

if TYPE_CHECKING:
    from torch import Tensor


def bind_loss(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, options: Options) -> Launch:
    """Losses (M,) of contiguous x (M, H) and w (V, H) of bf16 or fp16, and labels (M,).

    Rows of x and w are padded with zeros to a multiple of 16 bytes by a copy that is a part of the launch; where they are one,
    nothing is copied. Raises BadField for tensors that are not contiguous.
    """
    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M)
    copy, pairs = _padding(x_MH, w_VH)
    reduce = wgmma.bind_loss(pairs[0][1], pairs[1][1], labels_M, options)
    if copy is None:
        return reduce

    def launch() -> Tensor | Tensors:
        copy(*pairs)
        return reduce()

    return launch


def bind_backward(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """Gradients of x and w of bf16 or fp16, from the ln Σ exp that a forward pass wrote.

    Both passes copy x and w to padded rows; the backward pass copies both gradients without the padding. Errors: as `bind_loss`.
    """
    require_contiguous(x_MH=x_MH, w_VH=w_VH, labels_M=labels_M, dloss_M=dloss_M)
    copy, pairs = _padding(x_MH, w_VH)
    passes = wgmma.bind_backward(pairs[0][1], pairs[1][1], labels_M, dloss_M)
    if copy is None:
        return passes
    h = x_MH.shape[1]
    dx_MH, dw_VH = x_MH.new_empty(x_MH.shape), w_VH.new_empty(w_VH.shape)
    copy_back = row_copy(padded(h), h, x_MH.shape[0] + w_VH.shape[0])

    def forward() -> None:
        copy(*pairs)
        passes.forward()

    def backward() -> Tensors:
        copy(*pairs)
        dx_padded, dw_padded = passes.call()
        copy_back((dx_padded, dx_MH), (dw_padded, dw_VH))
        return dx_MH, dw_VH

    return Staged(forward, backward)


def _padding(x_MH: Tensor, w_VH: Tensor) -> tuple[RowCopy | None, tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]:
    """The copy, if one is needed, and what is copied to where: x and w."""
    h = x_MH.shape[1]
    if padded(h) == h:
        return None, ((x_MH, x_MH), (w_VH, w_VH))
    copies = x_MH.new_empty((x_MH.shape[0], padded(h))), w_VH.new_empty((w_VH.shape[0], padded(h)))
    copy = row_copy(h, padded(h), x_MH.shape[0] + w_VH.shape[0], x_MH, w_VH)
    return copy, ((x_MH, copies[0]), (w_VH, copies[1]))
