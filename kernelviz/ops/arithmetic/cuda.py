"""CUDA C++ kernels of `add`, `mul` and `div`, bound to tensors."""

from __future__ import annotations

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
"""Layouts for outputs that fit into the L2, and for those that do not.

On an H200 2^28 fp32 sums take 730 us so, 736 with four vectors a thread, 769 with streaming loads.
"""
COMBINE = {"add": "plus", "mul": "times", "div": "over"}
"""The device function of each op."""


def bind_scalar(x_N: Tensor, y_N: Tensor, operation: str) -> Launch:
    """One element a thread."""
    return _bind("arithmetic_scalar", x_N, y_N, operation, one_element(x_N))


def bind_vec16(x_N: Tensor, y_N: Tensor, operation: str) -> Launch:
    """16 bytes a thread; one element a thread for views that do not start on 16 bytes, where such loads would fault."""
    if not aligned(x_N, y_N):
        return bind_scalar(x_N, y_N, operation)
    return _bind("arithmetic_vec16", x_N, y_N, operation, one_vector(x_N))


def bind_unrolled(x_N: Tensor, y_N: Tensor, operation: str) -> Launch:
    """Four 16-byte vectors a thread."""
    return _bind_vectors(x_N, y_N, operation, UNROLLED)


def bind_adaptive(x_N: Tensor, y_N: Tensor, operation: str) -> Launch:
    """As many vectors a thread as suit the size."""
    written_bytes = x_N.numel() * x_N.element_size()
    return _bind_vectors(
        x_N, y_N, operation, adaptive(whole_vectors(x_N), written_bytes, x_N.device, within=WITHIN, beyond=BEYOND)
    )


def _bind_vectors(x_N: Tensor, y_N: Tensor, operation: str, layout: Layout) -> Launch:
    if not aligned(x_N, y_N):
        return bind_scalar(x_N, y_N, operation)
    return _bind("arithmetic_vectors", x_N, y_N, operation, some_vectors(x_N, layout))


def _bind(
    name: str,
    x_N: Tensor,
    y_N: Tensor,
    operation: str,
    flat: FlatLaunch,
) -> Launch:
    import torch

    require_contiguous(x_N=x_N, y_N=y_N)
    out_N = torch.empty_like(x_N)
    given = {"ELEMENT": nvrtc.element_type(x_N.dtype), "COMBINE": COMBINE[operation], **flat.defines}
    kernel = nvrtc.kernel(SOURCE, name, given)
    pointers = (x_N.data_ptr(), y_N.data_ptr(), out_N.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, flat.size)
        return out_N

    return launch
