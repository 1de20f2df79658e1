"""CUDA C++ kernel of `norm_activation` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_slabs import THREADS, row_slab
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.norm_activation.cuda import bind_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Whole rows of a contiguous matrix (M, N) as one piece a block; rows of more than 2 KiB as `bind_rows`.

    Errors: BadField for tensors that are not contiguous or do not start on 16 bytes.
    """
    import torch

    require_vec16(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    slab = row_slab(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    if slab is None:
        return bind_rows(x_MN, w_N, b_N, eps=eps)
    kernel = nvrtc.kernel(SOURCE, "layernorm_gelu_slabs", slab.defines(x_MN))
    blocks, shared_bytes = -(-m // slab.rows), slab.tensor_bytes
    y_MN = torch.empty_like(x_MN)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    numbers = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps), ctypes.c_int(slab.rows))
    arguments = (*pointers, *numbers)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments, shared_bytes=shared_bytes)
        return y_MN

    return launch
