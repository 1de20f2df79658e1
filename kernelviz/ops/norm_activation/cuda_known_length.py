"""CUDA C++ kernel of `norm_activation` for few short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.row_lanes import RowLanes, row_lanes
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.norm_activation.cuda_slab import bind_slab

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_length.cu"


def known_length_defines(x_MN: Tensor, lanes: RowLanes) -> dict[str, str]:
    """The macros of the kernel for a matrix that starts on 16 bytes."""
    return {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | lanes.defines(x_MN.shape[1], x_MN.element_size())


def bind_few_or_slab(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Lanes of a warp for each of few short rows of a contiguous matrix (M, N); others as `bind_slab`. Errors: those of it."""
    import torch

    require_vec16(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    lanes = row_lanes(m, n, x_MN.element_size())
    if lanes is None:
        return bind_slab(x_MN, w_N, b_N, eps=eps)
    kernel = nvrtc.kernel(SOURCE, "layernorm_gelu_known_length", known_length_defines(x_MN, lanes))
    y_MN = torch.empty_like(x_MN)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    numbers = (ctypes.c_int(m - 1), ctypes.c_float(eps))
    blocks, threads = lanes.blocks, lanes.threads

    def launch(alive: object = (x_MN, w_N, b_N)) -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *numbers)
        return y_MN

    return launch
