"""The backward pass for some columns of the vocabulary at a time: a kernel writes gradients of logits, two products follow."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.linear_cross_entropy.chunks import add_product

if TYPE_CHECKING:
    from torch import Tensor

SCRATCH_BYTES = 128 * 2**20
"""Of the gradients of logits that are kept at a time."""
WHOLE_TILES = 256
"""Columns of a chunk are a multiple of this if there are that many."""
PITCH = 8
"""Rows of the gradients begin at multiples of so many elements, so that TMA can store 16-bit ones and cuBLAS reads vectors."""

WriteGradients: TypeAlias = "Callable[[int, int], None]"
"""Writes dz (M, columns) of so many columns of the vocabulary from a first one on: ``write(first, columns)``."""


def columns_of_chunk(m: int, v: int, itemsize_bytes: int) -> int:
    """Columns of the vocabulary whose gradients are kept at a time.

    >>> columns_of_chunk(8192, 128256, 2), columns_of_chunk(64, 1000, 2), columns_of_chunk(2**22, 1000, 4)
    (8192, 1000, 8)
    """
    columns = max(1, SCRATCH_BYTES // (m * itemsize_bytes))
    return min(v, columns // WHOLE_TILES * WHOLE_TILES or columns)


def scratch(x_MH: Tensor, v: int) -> Tensor:
    """Memory for the gradients dz (M, columns) of a chunk."""
    import torch

    m = x_MH.shape[0]
    width = columns_of_chunk(m, v, x_MH.element_size())
    return torch.empty((m, -(-width // PITCH) * PITCH), dtype=x_MH.dtype, device=x_MH.device)


def bind_products(x_MH: Tensor, w_VH: Tensor, dz_MC: Tensor, write: WriteGradients) -> Launch:
    """Gradients (M, H) and (V, H) of x and w: for each chunk, `write` fills `dz_MC`, then dw = dzᵀ x and dx += dz w, in fp32."""
    import torch

    m, v = x_MH.shape[0], w_VH.shape[0]
    width = columns_of_chunk(m, v, x_MH.element_size())
    total_MH = torch.empty(x_MH.shape, dtype=torch.float32, device=x_MH.device)
    dx_MH = total_MH if x_MH.dtype == torch.float32 else torch.empty_like(x_MH)
    dw_VH = torch.empty_like(w_VH)

    def launch() -> Tensors:
        total_MH.zero_()
        for first in range(0, v, width):
            columns = min(width, v - first)
            write(first, columns)
            part_MC, rows = dz_MC[:, :columns], slice(first, first + columns)
            torch.mm(part_MC.t(), x_MH, out=dw_VH[rows])
            add_product(total_MH, part_MC, w_VH[rows])
        if dx_MH is not total_MH:
            dx_MH.copy_(total_MH)
        return dx_MH, dw_VH

    return launch
