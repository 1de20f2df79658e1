"""CUDA C++ kernel of `row_sum` and `argmax` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_slabs import THREADS, row_slab, starts_on_vectors
from kernelviz.ops.row_reduction.cuda import bind_adaptive

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(x_MN: Tensor, argmax: bool) -> Launch:
    """Whole rows of a contiguous matrix (M, N) as one piece a block; rows of more than 2 KiB as `bind_adaptive`.

    So is a matrix that does not start on 16 bytes. Raises BadField for one that is not contiguous.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    slab = row_slab(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    if slab is None or not starts_on_vectors(x_MN):
        return bind_adaptive(x_MN, argmax)
    kernel = nvrtc.kernel(SOURCE, "row_slab", slab.defines(x_MN) | ({"ARGMAX": "1"} if argmax else {}))
    out_M = torch.empty(m, dtype=torch.int64 if argmax else x_MN.dtype, device=x_MN.device)
    blocks, shared_bytes = -(-m // slab.rows), slab.tensor_bytes
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(slab.rows))
    arguments = (x_MN.data_ptr(), out_M.data_ptr(), *sizes)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments, shared_bytes=shared_bytes)
        return out_M

    return launch
