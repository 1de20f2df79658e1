"""The CUDA C++ kernel of `softmax` by clusters that stay, bound to tensors: which blocks take which columns of a row."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.persistent_columns import fitted
from kernelviz.ops.kernels.row_tiles import require_words
from kernelviz.ops.softmax.cuda import bind_cluster

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"


def bind_columns(x_MN: Tensor) -> Launch:
    """Rows of a contiguous matrix (M, N) by clusters that stay, or as `bind_cluster` where rows are few, short or too long.

    Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_words(x_MN=x_MN)
    m, n = x_MN.shape
    found = fitted(SOURCE, "softmax_columns", x_MN)
    if found is None:
        return bind_cluster(x_MN)
    out_MN = torch.empty_like(x_MN)
    kernel, shape = found.kernel, found.shape
    threads, cluster, shared_bytes = shape.lanes, shape.cluster, shape.shared_bytes
    blocks = min(found.resident, cluster * m)
    claims = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), out_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), claims.data_ptr())

    def launch() -> Tensor:
        assert claims.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return out_MN

    return launch
