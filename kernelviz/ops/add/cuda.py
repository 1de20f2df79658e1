"""CUDA C++ kernels of `add`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops import nvrtc
from kernelviz.ops.layout import require_contiguous
from kernelviz.ops.op import Launch

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 256


def bind_scalar(x_N: Tensor, y_N: Tensor) -> Launch:
    """One element a thread."""
    return _bind("add_scalar", x_N, y_N, x_N.numel())


def bind_vec16(x_N: Tensor, y_N: Tensor) -> Launch:
    """16 bytes a thread; one element a thread for views that do not start on 16 bytes, where such loads would fault."""
    if x_N.data_ptr() % 16 or y_N.data_ptr() % 16:
        return bind_scalar(x_N, y_N)
    width = 16 // x_N.element_size()
    # At least one thread for each element of the tail, which is shorter than a vector.
    return _bind("add_vec16", x_N, y_N, max(x_N.numel() // width, width))


def _bind(name: str, x_N: Tensor, y_N: Tensor, threads: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N, y_N=y_N)
    out_N = torch.empty_like(x_N)  # torch aligns what it allocates to 512 bytes
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_N.dtype)})
    blocks = -(-threads // THREADS)
    pointers = (x_N.data_ptr(), y_N.data_ptr(), out_N.data_ptr())
    count = ctypes.c_longlong(x_N.numel())

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *pointers, count)
        return out_N

    return launch
