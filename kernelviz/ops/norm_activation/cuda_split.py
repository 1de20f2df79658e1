"""CUDA C++ kernels of `norm_activation` for a few long rows: two launches, in which several blocks share a row."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.kernels.split_rows import row_split
from kernelviz.ops.norm_activation.cuda import bind_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_split.cu"


def bind_split(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Several blocks a row; as `bind_rows` where a row has one.

    Errors: BadField for tensors that are not contiguous or do not start on 16 bytes.
    """
    import torch

    require_vec16(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    split = row_split(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    if split.parts == 1:
        return bind_rows(x_MN, w_N, b_N, eps=eps)
    first = nvrtc.kernel(SOURCE, "moments_of_parts", split.defines(x_MN))
    second = nvrtc.kernel(SOURCE, "layernorm_gelu_parts", split.defines(x_MN))
    # Number, mean and squared distances of the elements of each part.
    partials = torch.empty(m * split.parts, 3, dtype=torch.float32, device=x_MN.device)
    y_MN = torch.empty_like(x_MN)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(split.parts))
    blocks, threads = m * split.parts, split.lanes
    written = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), partials.data_ptr(), y_MN.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(first, blocks, threads, x_MN.data_ptr(), partials.data_ptr(), *sizes)
        nvrtc.launch(second, blocks, threads, *written, *sizes, ctypes.c_float(eps))
        return y_MN

    return launch
