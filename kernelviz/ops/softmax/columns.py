"""The CUDA C++ kernel of `softmax` by clusters that stay, bound to tensors: which blocks take which columns of a row."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.persistent_columns import persistent_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.softmax.cuda import bind_cluster

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"


def bind_columns(x_MN: Tensor) -> Launch:
    """Rows of a contiguous matrix (M, N) by clusters that stay, or as `bind_cluster` where rows are few, short or too long.

    Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_vec16(x_MN=x_MN)
    m, n = x_MN.shape
    persistent = persistent_kernel(SOURCE, "softmax_columns", x_MN)
    if persistent is None:
        return bind_cluster(x_MN)
    out_MN = torch.empty_like(x_MN)
    kernel, tile = persistent.kernel, persistent.tile
    threads, cluster, shared_bytes = tile.lanes, tile.cluster, tile.shared_bytes
    blocks = min(persistent.resident, cluster * m)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), out_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), tile_counter.data_ptr())

    def launch() -> Tensor:
        assert tile_counter.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return out_MN

    return launch
