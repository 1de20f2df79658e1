"""The CUDA C++ kernels of `argmax` that compare words, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.row_reduction.streamed_shapes import WORD_BYTES, Shape, parts_for, shape_of, with_residents

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_argmax_vec16.cu"
SHORTEST_PART_BYTES = 8 * 1024
"""Of a row that several blocks share."""
LONGEST_ROW = 2**31 - 1 - 16 * 1024
"""Places are counted in 32 bits, also those that a thread looks at beyond the row's end."""


def bind_words(x_MN: Tensor, *, shape: Shape | None = None, parts: int = 0) -> Launch:
    """A warp, a block or several blocks a row of a contiguous matrix (M, N); raises BadField for others.

    `shape` and `parts` replace what is chosen by the rows' number and length.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if m >= 2**31 or n > LONGEST_ROW:
        raise BadField("size", max(m, n), "this kernel counts rows and places in a row in 32 bits")
    size, count = x_MN.element_size(), multiprocessors(x_MN.device)
    width = WORD_BYTES // size
    parts = parts or parts_for(m, n * size, count, SHORTEST_PART_BYTES)
    # Whole words, so that all parts of an aligned row are aligned.
    part = -(-n // (width * parts)) * width
    parts = -(-n // part)
    aligned = n % width == 0 and x_MN.data_ptr() % WORD_BYTES == 0
    out_M = torch.empty(m, dtype=torch.int64, device=x_MN.device)
    if parts == 1:
        shape = shape or shape_of(m, -(-n // width), count)
    else:
        shape = shape or with_residents(256 if part * size >= 32 * 1024 else 128, part // width)
    defines = shape.defines(nvrtc.element_type(x_MN.dtype), aligned=aligned)
    kernel = nvrtc.kernel(SOURCE, "argmax_words" if parts == 1 else "argmax_words_split", defines)
    blocks, threads = -(-m // shape.rows), shape.threads
    row_sizes = (ctypes.c_int(m), ctypes.c_int(n))

    def whole() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, x_MN.data_ptr(), out_M.data_ptr(), *row_sizes)
        return out_M

    if parts == 1:
        return whole
    keys = torch.empty(m * parts, dtype=torch.int32, device=x_MN.device)
    places = torch.empty(m * parts, dtype=torch.int32, device=x_MN.device)
    tickets = torch.zeros(m, dtype=torch.int32, device=x_MN.device)
    part_sizes = (ctypes.c_int(n), ctypes.c_int(parts), ctypes.c_int(part))

    def split() -> Tensor:
        # Addresses are asked for here, so that the launch keeps what it alone owns.
        pointers = (t.data_ptr() for t in (x_MN, keys, places, tickets, out_M))
        nvrtc.launch(kernel, m * parts, threads, *pointers, *part_sizes)
        return out_M

    return split
