"""CUDA C++ kernels of `scale`, bound to tensors."""

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
WORDS = 4
"""16-byte words a thread of `scale_vec16_unrolled`."""


def bind_scalar(x_N: Tensor, scale: float) -> Launch:
    """One element a thread."""
    return _bind("scale_scalar", x_N, scale, threads=x_N.numel(), block=256)


def bind_vec16(x_N: Tensor, scale: float) -> Launch:
    """16 bytes a thread; one element a thread for views that do not start on 16 bytes, where such loads would fault."""
    return (
        _bind("scale_vec16", x_N, scale, threads=vectors(x_N), block=256) if aligned(x_N) else bind_scalar(x_N, scale)
    )


def bind_vec16_unrolled(x_N: Tensor, scale: float) -> Launch:
    """Four words of 16 bytes a thread; one element a thread for views that do not start on 16 bytes."""
    if not aligned(x_N):
        return bind_scalar(x_N, scale)
    return _bind("scale_vec16_unrolled", x_N, scale, threads=-(-vectors(x_N) // WORDS), block=512)


def aligned(x_N: Tensor) -> bool:
    """Whether 16-byte loads are allowed. The output's are: torch aligns what it allocates to 512 bytes."""
    return x_N.data_ptr() % 16 == 0


def vectors(x_N: Tensor) -> int:
    """Whole 16-byte words; the elements behind them are fewer than one block has threads."""
    return x_N.numel() * x_N.element_size() // 16


def _bind(name: str, x_N: Tensor, scale: float, *, threads: int, block: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_N.dtype)})
    blocks = max(1, -(-threads // block))
    pointers = (x_N.data_ptr(), out_N.data_ptr())
    arguments = (ctypes.c_longlong(x_N.numel()), ctypes.c_float(scale))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, block, *pointers, *arguments)
        return out_N

    return launch
