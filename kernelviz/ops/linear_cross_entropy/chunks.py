"""Losses and gradients with torch's ops, for some rows at a time: the logits of one chunk are in memory, never all of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch

if TYPE_CHECKING:
    from torch import Tensor

CHUNK_BYTES = 128 * 2**20
"""Of the logits of a chunk. With fewer than about 500 rows of 128256 logits, a product would leave SMs of an H200 idle."""
WHOLE_TILES = 128
"""Rows of a chunk are a multiple of this if there are that many."""


def rows_of_chunk(m: int, v: int, itemsize_bytes: int) -> int:
    """The rows of a chunk.

    >>> rows_of_chunk(8192, 128256, 2), rows_of_chunk(100, 128256, 2), rows_of_chunk(8192, 2**24, 2)
    (512, 100, 4)
    """
    rows = max(1, CHUNK_BYTES // (v * itemsize_bytes))
    return min(m, rows // WHOLE_TILES * WHOLE_TILES or rows)


def chunks(m: int, rows: int) -> Iterator[slice]:
    """Ranges of `rows` rows each, of which the last may be shorter.

    >>> [(s.start, s.stop) for s in chunks(5, 2)]
    [(0, 2), (2, 4), (4, 5)]
    """
    for first in range(0, m, rows):
        yield slice(first, min(first + rows, m))


def bind_loss(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor) -> Launch:
    """Losses (M,) of x (M, H), w (V, H) and labels (M,); logits of a chunk of rows, and their ln p."""
    import torch

    m, v = x_MH.shape[0], w_VH.shape[0]
    rows = rows_of_chunk(m, v, x_MH.element_size())
    logits_CV = torch.empty((rows, v), dtype=x_MH.dtype, device=x_MH.device)
    loss_M = torch.empty(m, dtype=x_MH.dtype, device=x_MH.device)

    def launch() -> Tensor:
        for chunk in chunks(m, rows):
            part_CV = logits_CV[: chunk.stop - chunk.start]
            torch.mm(x_MH[chunk], w_VH.t(), out=part_CV)
            chosen_C1 = part_CV.log_softmax(-1).gather(-1, labels_M[chunk, None])
            torch.neg(chosen_C1.squeeze(-1), out=loss_M[chunk])
        return loss_M

    return launch


def bind_backward(x_MH: Tensor, w_VH: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Launch:
    """Gradients (M, H) and (V, H) of x and w, for some rows at a time: logits, their softmax, and its two products."""
    import torch

    m, v = x_MH.shape[0], w_VH.shape[0]
    rows = rows_of_chunk(m, v, x_MH.element_size())
    logits_CV = torch.empty((rows, v), dtype=x_MH.dtype, device=x_MH.device)
    dx_MH = torch.empty(x_MH.shape, dtype=x_MH.dtype, device=x_MH.device)
    total_VH = torch.empty(w_VH.shape, dtype=torch.float32, device=w_VH.device)
    dw_VH = total_VH if w_VH.dtype == torch.float32 else torch.empty_like(total_VH, dtype=w_VH.dtype)

    def launch() -> Tensors:
        total_VH.zero_()
        for chunk in chunks(m, rows):
            part_CV = logits_CV[: chunk.stop - chunk.start]
            torch.mm(x_MH[chunk], w_VH.t(), out=part_CV)
            dz_CV = part_CV.softmax(-1).mul_(dloss_M[chunk, None])
            dz_CV.scatter_add_(-1, labels_M[chunk, None], -dloss_M[chunk, None])
            torch.mm(dz_CV, w_VH, out=dx_MH[chunk])
            add_product(total_VH, dz_CV.t(), x_MH[chunk])
        if dw_VH is not total_VH:
            dw_VH.copy_(total_VH)
        return dx_MH, dw_VH

    return launch


def add_product(total_MN: Tensor, a_MK: Tensor, b_KN: Tensor) -> None:
    """total += a b, where the total is fp32 also if a and b are not: rounded to 16 bits, the sums of chunks would lose digits."""
    import torch

    if a_MK.dtype == torch.float32:
        total_MN.addmm_(a_MK, b_KN)
    elif a_MK.is_cuda:
        torch.addmm(total_MN, a_MK, b_KN, out_dtype=torch.float32, out=total_MN)
    else:
        total_MN.addmm_(a_MK.float(), b_KN.float())
