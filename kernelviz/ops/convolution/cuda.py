"""CUDA C++ kernels of `conv2d` and `conv_bias_relu` without tensor cores, bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.convolution.geometry import Geometry, geometry_of
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 256
VECTOR = 8
"""Elements of 16 bytes."""


def sizes_of(g: Geometry) -> tuple[ctypes.c_int, ...]:
    """The sizes as the kernels take them, in the order of `SIZES` in cuda.cu."""
    return tuple(map(ctypes.c_int, (g.n, g.h, g.w, g.c, g.k, g.r, g.s, g.p, g.q)))


def bind_direct(x_NHWC: Tensor, w_KRRC: Tensor, b_K: Tensor | None, s: int) -> Launch:
    """One thread an element of x ∗ w, or of max(x ∗ w + b, 0). Raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, **({} if b_K is None else {"b_K": b_K}))
    g = geometry_of(x_NHWC, w_KRRC, s)
    y_NPQK = torch.empty((g.n, g.p, g.q, g.k), dtype=x_NHWC.dtype, device=x_NHWC.device)
    kernel = nvrtc.kernel(SOURCE, "conv_direct", _defines(x_NHWC, relu=b_K is not None))
    bias = w_KRRC if b_K is None else b_K
    pointers = tuple(t.data_ptr() for t in (x_NHWC, w_KRRC, bias, y_NPQK))
    blocks, sizes = -(-y_NPQK.numel() // THREADS), sizes_of(g)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *pointers, *sizes)
        return y_NPQK

    return launch


def bind_windows(x_NHWC: Tensor, g: Geometry) -> tuple[Callable[[], None], Tensor]:
    """A launch that writes the window of each position as a row of a matrix (N P Q, R R C), and that matrix.

    Raises BadField for images that are not contiguous.
    """
    import torch

    require_contiguous(x_NHWC=x_NHWC)
    windows_MT = torch.empty((g.pixels, g.terms), dtype=x_NHWC.dtype, device=x_NHWC.device)
    width = VECTOR if g.c % VECTOR == 0 else 1
    kernel = nvrtc.kernel(SOURCE, "conv_windows", _defines(x_NHWC, relu=False) | {"WIDTH": str(width)})
    pointers = x_NHWC.data_ptr(), windows_MT.data_ptr()
    blocks, sizes = -(-windows_MT.numel() // width // THREADS), sizes_of(g)
    return lambda: nvrtc.launch(kernel, blocks, THREADS, *pointers, *sizes), windows_MT


def _defines(x_NHWC: Tensor, *, relu: bool) -> dict[str, str]:
    return {"ELEMENT": nvrtc.element_type(x_NHWC.dtype), "RELU": str(int(relu)), "WIDTH": "1"}
