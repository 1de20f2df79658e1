"""`grouped_matmul` by torch's libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.kernels.torch_precision import in_precision
from kernelviz.ops.matmul.groups_reference import row_ranges

if TYPE_CHECKING:
    from torch import Tensor


def bind_each_group(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """torch.mm for each group that has rows. The offsets are read here, so that no call waits for the device."""
    import torch

    y_TN = torch.empty((x_TK.shape[0], w_GNK.shape[1]), dtype=x_TK.dtype, device=x_TK.device)
    parts = [(x_TK[first:last], w_GNK[group].T, y_TN[first:last]) for group, first, last in row_ranges(offsets_G)]

    def launch() -> Tensor:
        for x, w, y in parts:
            torch.mm(x, w, out=y)
        return y_TN

    return in_precision(launch, x_TK, None)


def bind_padded(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """Copies of all groups with the rows of the largest one, torch.bmm, and a copy of the rows that exist.

    The rows of the largest group are read here. All else comes from the offsets on the device, in each call.
    """
    import torch

    (rows, k), (groups, n) = x_TK.shape, w_GNK.shape[:2]
    most = max(last - first for _, first, last in row_ranges(offsets_G))
    within_P, rows_T = (torch.arange(count, dtype=torch.int32, device=x_TK.device) for count in (most, rows))
    padded_GPK = torch.empty((groups, most, k), dtype=x_TK.dtype, device=x_TK.device)
    product_GPN = torch.empty((groups, most, n), dtype=x_TK.dtype, device=x_TK.device)
    y_TN = torch.empty((rows, n), dtype=x_TK.dtype, device=x_TK.device)

    def launch() -> Tensor:
        begins_G = torch.nn.functional.pad(offsets_G[:-1], (1, 0))
        # Rows after a group's last one are some other group's, and their products are not copied back.
        source_GP = (begins_G[:, None] + within_P).clamp_(max=rows - 1)
        torch.index_select(x_TK, 0, source_GP.view(-1), out=padded_GPK.view(-1, k))
        torch.bmm(padded_GPK, w_GNK.transpose(1, 2), out=product_GPN)
        group_T = torch.searchsorted(offsets_G, rows_T, right=True)
        position_T = group_T * most + rows_T - begins_G[group_T]
        return torch.index_select(product_GPN.view(-1, n), 0, position_T, out=y_TN)

    return in_precision(launch, x_TK, None)


def bind_grouped_mm(x_TK: Tensor, w_GNK: Tensor, offsets_G: Tensor) -> Launch:
    """torch._grouped_mm, which is torch.nn.functional.grouped_mm since torch 2.10; into a new tensor.

    Raises BadField for tensors that are not contiguous, and for rows of x, w or y that are no multiples of 16 bytes.
    """
    import torch

    require_contiguous(x_TK=x_TK, w_GNK=w_GNK, offsets_G=offsets_G)
    require_pitch("k", x_TK.shape[1], x_TK.element_size())
    require_pitch("n", w_GNK.shape[1], w_GNK.element_size())
    w_GKN = w_GNK.transpose(1, 2)
    return lambda: torch._grouped_mm(x_TK, w_GKN, offs=offsets_G)
