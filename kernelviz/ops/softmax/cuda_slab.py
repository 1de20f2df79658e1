"""CUDA C++ kernels of `softmax` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_slabs import THREADS, row_slab
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.softmax.cuda import bind_row, bind_row_backward

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(x_MN: Tensor) -> Launch:
    """Whole rows of a contiguous matrix (M, N) as one piece a block; rows of more than 2 KiB as `bind_row`.

    Raises BadField for a matrix that is not contiguous or does not start on 16 bytes.
    """
    import torch

    require_vec16(x_MN=x_MN)
    return _forward(x_MN, torch.empty_like(x_MN)) or bind_row(x_MN)


def bind_slab_backward(x_MN: Tensor, dy_MN: Tensor) -> Staged:
    """The backward pass of `bind_slab`, after its forward pass; longer rows as `bind_row_backward`. Errors as above."""
    import torch

    require_vec16(x_MN=x_MN, dy_MN=dy_MN)
    m, n = x_MN.shape
    slab = row_slab(m, n, x_MN.element_size(), multiprocessors(x_MN.device), tensors=2)
    y_MN, dx_MN = torch.empty_like(x_MN), torch.empty_like(x_MN)
    forward = _forward(x_MN, y_MN)
    if slab is None or forward is None:
        return bind_row_backward(x_MN, dy_MN)
    kernel = nvrtc.kernel(SOURCE, "softmax_backward_slab", slab.defines(x_MN))
    blocks, shared_bytes = -(-m // slab.rows), 2 * slab.tensor_bytes
    pointers = (y_MN.data_ptr(), dy_MN.data_ptr(), dx_MN.data_ptr())
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(slab.rows), ctypes.c_int(slab.tensor_bytes))
    arguments = (*pointers, *sizes)

    def launch() -> Tensor:
        assert y_MN.numel()  # the launch keeps the tensor alive
        nvrtc.launch(kernel, blocks, THREADS, *arguments, shared_bytes=shared_bytes)
        return dx_MN

    return Staged(forward, launch)


def _forward(x_MN: Tensor, out_MN: Tensor) -> Launch | None:
    m, n = x_MN.shape
    slab = row_slab(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    if slab is None:
        return None
    kernel = nvrtc.kernel(SOURCE, "softmax_slab", slab.defines(x_MN))
    blocks, shared_bytes = -(-m // slab.rows), slab.tensor_bytes
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(slab.rows))
    arguments = (x_MN.data_ptr(), out_MN.data_ptr(), *sizes)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments, shared_bytes=shared_bytes)
        return out_MN

    return launch
