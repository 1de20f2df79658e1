"""CUDA C++ kernels of `softmax` for a few long rows, bound to tensors: two launches, in which several blocks share a row."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.kernels.split_rows import RowSplit, row_split
from kernelviz.ops.softmax.cuda import bind_row, bind_row_backward

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_split.cu"


def bind_split(x_MN: Tensor) -> Launch:
    """Several blocks a row of a contiguous matrix (M, N); as `bind_row` where a row has one.

    Raises BadField for a matrix that is not contiguous or does not start on 16 bytes.
    """
    import torch

    require_vec16(x_MN=x_MN)
    split = _split(x_MN)
    return bind_row(x_MN) if split.parts == 1 else _forward(x_MN, torch.empty_like(x_MN), split)


def bind_split_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass of `bind_split`, after its forward pass; as `bind_row_backward` where a row has one block."""
    import torch

    require_vec16(x_MN=x_MN, dy_MN=dy_MN)
    split = _split(x_MN)
    if split.parts == 1:
        return bind_row_backward(x_MN, dy_MN)
    y_MN, dx_MN = torch.empty_like(x_MN), torch.empty_like(x_MN)
    m, n = x_MN.shape
    sums = torch.empty(m * split.parts, dtype=torch.float32, device=x_MN.device)
    first = nvrtc.kernel(SOURCE, "softmax_backward_parts", split.defines(x_MN))
    second = nvrtc.kernel(SOURCE, "softmax_backward_from_parts", split.defines(x_MN))
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(split.parts))
    blocks, threads = m * split.parts, split.lanes

    def launch() -> Tensor:
        given = (y_MN.data_ptr(), dy_MN.data_ptr(), sums.data_ptr())
        nvrtc.launch(first, blocks, threads, *given, *sizes)
        nvrtc.launch(second, blocks, threads, *given, dx_MN.data_ptr(), *sizes)
        return dx_MN

    return Staged(_forward(x_MN, y_MN, split), launch)


def _split(x_MN: Tensor) -> RowSplit:
    m, n = x_MN.shape
    return row_split(m, n, x_MN.element_size(), multiprocessors(x_MN.device))


def _forward(x_MN: Tensor, out_MN: Tensor, split: RowSplit) -> Launch:
    import torch

    m, n = x_MN.shape
    # Maximum and sum of exponentials of each part.
    partials = torch.empty(m * split.parts, 2, dtype=torch.float32, device=x_MN.device)
    first = nvrtc.kernel(SOURCE, "softmax_parts", split.defines(x_MN))
    second = nvrtc.kernel(SOURCE, "softmax_from_parts", split.defines(x_MN))
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(split.parts))
    blocks, threads = m * split.parts, split.lanes

    def launch() -> Tensor:
        given = (x_MN.data_ptr(), partials.data_ptr())
        nvrtc.launch(first, blocks, threads, *given, *sizes)
        nvrtc.launch(second, blocks, threads, *given, out_MN.data_ptr(), *sizes)
        return out_MN

    return launch
