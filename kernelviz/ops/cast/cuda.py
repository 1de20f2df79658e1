"""CUDA C++ kernels of the casts, bound to tensors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element, one_vector, some_vectors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import UNROLLED, Layout, adaptive, aligned, whole_vectors

if TYPE_CHECKING:
    import torch
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
WITHIN, BEYOND = Layout(vectors=2, threads=128, streaming=True), Layout(vectors=2, threads=128, streaming=False)
"""Layouts for outputs that fit into the L2, and for those that do not. Stores are narrower than loads, so two vectors a thread.

On an H200 2^28 numbers go to fp16 in 364 us so, in 370 one vector a thread.
"""


def bind_scalar(x_N: Tensor, to: torch.dtype) -> Launch:
    """One element a thread."""
    return _bind("cast_scalar", x_N, to, one_element(x_N))


def bind_vec16(x_N: Tensor, to: torch.dtype) -> Launch:
    """16 bytes a load; one element a thread for views that do not start on 16 bytes, where such loads would fault."""
    if not aligned(x_N):
        return bind_scalar(x_N, to)
    return _bind("cast_vec16", x_N, to, one_vector(x_N))


def bind_wide_store(x_N: Tensor, to: torch.dtype) -> Launch:
    """16 bytes a store, and as many loads as that takes."""
    if not aligned(x_N):
        return bind_scalar(x_N, to)
    stores = whole_vectors(x_N) * to.itemsize // x_N.element_size()
    return _bind("cast_wide_store", x_N, to, one_vector(x_N, stores))


def bind_unrolled(x_N: Tensor, to: torch.dtype) -> Launch:
    """Four 16-byte vectors a thread."""
    return _bind_vectors(x_N, to, UNROLLED)


def bind_adaptive(x_N: Tensor, to: torch.dtype) -> Launch:
    """As many vectors a thread as suit the size."""
    written_bytes = x_N.numel() * to.itemsize
    return _bind_vectors(x_N, to, adaptive(whole_vectors(x_N), written_bytes, x_N.device, within=WITHIN, beyond=BEYOND))


def _bind_vectors(x_N: Tensor, to: torch.dtype, layout: Layout) -> Launch:
    if not aligned(x_N):
        return bind_scalar(x_N, to)
    return _bind("cast_vectors", x_N, to, some_vectors(x_N, layout))


def _bind(
    name: str,
    x_N: Tensor,
    to: torch.dtype,
    flat: FlatLaunch,
) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N, dtype=to)
    target = "Fp8" if to == torch.float8_e4m3fn else nvrtc.element_type(to)
    kernel = nvrtc.kernel(SOURCE, name, {"FROM": nvrtc.element_type(x_N.dtype), "TO": target, **flat.defines})
    pointers = (x_N.data_ptr(), out_N.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, flat.size)
        return out_N

    return launch
