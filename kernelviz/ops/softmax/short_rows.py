"""The CUDA C++ kernel of the backward pass of `softmax` for rows that divide a 16-byte vector, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, Layout, adaptive, whole_vectors

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "short_rows.cu"
WITHIN, BEYOND = Layout(vectors=1, threads=256, streaming=True), Layout(vectors=1, threads=128, streaming=False)
"""For a gradient that fits into the L2, and for others, as `arithmetic` has them. H200: streaming loads, and eight rows of one
bf16 a thread, take 146 us for 104 million rows, and torch.compile, whose loads are plain, 140."""


def divides_vector(n: int, itemsize_bytes: int) -> bool:
    """Whether a 16-byte vector is whole rows of n elements.

    >>> [n for n in range(1, 20) if divides_vector(n, 2)], divides_vector(8, 4)
    ([1, 2, 4, 8], False)
    """
    return VEC16_BYTES % (n * itemsize_bytes) == 0


def bind_short_rows_backward(y_MN: Tensor, dy_MN: Tensor, dx_MN: Tensor) -> Launch:
    """dx from y and dy, contiguous matrices that start on 16 bytes and whose rows divide a 16-byte vector."""
    size_bytes = dx_MN.numel() * dx_MN.element_size()
    layout = adaptive(whole_vectors(dy_MN), size_bytes, dy_MN.device, within=WITHIN, beyond=BEYOND)
    defines = {"ELEMENT": nvrtc.element_type(dy_MN.dtype), "LENGTH": str(dy_MN.shape[1])} | layout.defines
    kernel = nvrtc.kernel(SOURCE, "softmax_backward_short_rows", defines)
    blocks = layout.blocks(whole_vectors(dy_MN))
    pointers = (y_MN.data_ptr(), dy_MN.data_ptr(), dx_MN.data_ptr())
    elements = ctypes.c_longlong(dy_MN.numel())

    def launch() -> Tensor:
        assert y_MN.numel()  # the launch keeps the tensor alive
        nvrtc.launch(kernel, blocks, layout.threads, *pointers, elements)
        return dx_MN

    return launch
