"""CUDA C++ kernels of `scale`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element, one_vector, some_vectors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import UNROLLED, Layout, adaptive, aligned, whole_vectors

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
WITHIN, BEYOND = Layout(vectors=1, threads=256, streaming=True), Layout(vectors=1, threads=128, streaming=False)
"""For outputs that L2 can hold, and for larger ones: the fastest layouts of `copy`, which moves the same bytes."""


def bind_scalar(x_N: Tensor, scale: float) -> Launch:
    """One element a thread."""
    return _bind("scale_scalar", x_N, scale, one_element(x_N))


def bind_vec16(x_N: Tensor, scale: float) -> Launch:
    """16 bytes a thread; one element a thread for views that do not start on 16 bytes, where such loads would fault."""
    if not aligned(x_N):
        return bind_scalar(x_N, scale)
    return _bind("scale_vec16", x_N, scale, one_vector(x_N))


def bind_unrolled(x_N: Tensor, scale: float) -> Launch:
    """Four 16-byte vectors a thread."""
    return _bind_vectors(x_N, scale, UNROLLED)


def bind_adaptive(x_N: Tensor, scale: float) -> Launch:
    """One to four 16-byte vectors per thread, by the size of the output."""
    written_bytes = x_N.numel() * x_N.element_size()
    return _bind_vectors(
        x_N, scale, adaptive(whole_vectors(x_N), written_bytes, x_N.device, within=WITHIN, beyond=BEYOND)
    )


def _bind_vectors(x_N: Tensor, scale: float, layout: Layout) -> Launch:
    if not aligned(x_N):
        return bind_scalar(x_N, scale)
    return _bind("scale_vectors", x_N, scale, some_vectors(x_N, layout))


def _bind(
    name: str,
    x_N: Tensor,
    scale: float,
    flat: FlatLaunch,
) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_N.dtype), **flat.defines})
    pointers = (x_N.data_ptr(), out_N.data_ptr())
    arguments = (flat.size, ctypes.c_float(scale))

    def launch() -> Tensor:
        nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, *arguments)
        return out_N

    return launch
