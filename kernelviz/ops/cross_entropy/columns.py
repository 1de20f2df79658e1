"""The CUDA C++ kernel of `cross_entropy_with_grad` by clusters that stay, bound to tensors: which blocks take which columns."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.cross_entropy.cuda import bind_cluster_with_grad
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.persistent_columns import persistent_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"


def bind_columns_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """Losses and gradient of contiguous logits (M, V) by clusters that stay; as `bind_cluster_with_grad` where rows are few,
    short or too long.

    Raises BadField for what is not contiguous.
    """
    import torch

    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)
    m, n = logits_MV.shape
    persistent = persistent_kernel(SOURCE, "cross_entropy_with_grad_columns", logits_MV)
    if persistent is None:
        return bind_cluster_with_grad(logits_MV, labels_M)
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV)
    kernel, tile = persistent.kernel, persistent.tile
    threads, cluster, shared_bytes = tile.lanes, tile.cluster, tile.shared_bytes
    blocks = min(persistent.resident, cluster * m)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=logits_MV.device)
    pointers = tuple(t.data_ptr() for t in (logits_MV, labels_M, loss_M, dx_MV))
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), tile_counter.data_ptr())

    def launch() -> tuple[Tensor, Tensor]:
        assert tile_counter.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return loss_M, dx_MV

    return launch
