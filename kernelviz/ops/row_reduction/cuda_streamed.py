"""The CUDA C++ kernel of `row_sum` that asks for words while it adds the last ones, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.row_reduction import cuda
from kernelviz.ops.row_reduction.streamed_shapes import VEC16_BYTES, Shape, parts_for, power_of_2

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_streamed.cu"
LONGEST_ROW = 2**31 - 1 - 64 * 1024
"""Places are counted in 32 bits, also those that a thread looks at beyond the row's end."""
FEW_ROWS_THREADS = 512


def shape_of(m: int, words: int, count: int) -> Shape:
    """Of m rows of so many words on a GPU of `count` SMs: 512 threads a row with two to four words each under way.

    One word of each where a row has no more for them: 16 rows of 4096 in bf16 take 1.7 us so, 1.9 with two. An SM has up to
    2048 threads: 8192 rows of 8192 read 4140 GB/s (by events, warm writes), 3857 with 1536.

    >>> shape_of(8192, 1024, 132), shape_of(16, 512, 132)
    (Shape(lanes=512, group=2, rows=1, resident=4), Shape(lanes=512, group=1, rows=1, resident=4))
    >>> shape_of(16384, 512, 132), shape_of(4, 100, 132)
    (Shape(lanes=256, group=2, rows=1, resident=8), Shape(lanes=128, group=1, rows=1, resident=16))
    """
    if m < 2 * count:
        lanes = max(32, min(FEW_ROWS_THREADS, power_of_2(words)))
        return Shape(lanes, min(2, power_of_2(-(-words // lanes))), resident=2048 // lanes if lanes > 64 else 32)
    lanes = max(32, min(512, power_of_2(-(-words // 2))))
    return Shape(lanes, 2, resident=min(32, 2048 // lanes))


def bind_streamed(x_MN: Tensor, *, shape: Shape | None = None) -> Launch:
    """A block a row of a contiguous matrix (M, N); raises BadField for others.

    Many short rows are taken by warps and few long ones by several blocks each, by the kernels of `cuda_adaptive`. `shape`
    replaces what is chosen by the rows' number and length.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if m >= 2**31 or n > LONGEST_ROW:
        raise BadField("size", max(m, n), "this kernel counts rows and places in a row in 32 bits")
    size, count = x_MN.element_size(), multiprocessors(x_MN.device)
    if shape is None and n * size <= cuda.LONGEST_ROW_OF_A_WARP_BYTES and m >= 32 * count:
        return cuda.bind_row_per_warp(x_MN, argmax=False)
    if shape is None and parts_for(m, n * size, count, cuda.SHORTEST_PART_BYTES) > 1:
        return cuda.bind_split_row(x_MN, argmax=False)
    width = VEC16_BYTES // size
    shape = shape or shape_of(m, -(-n // width), count)
    aligned = n % width == 0 and x_MN.data_ptr() % VEC16_BYTES == 0
    kernel = nvrtc.kernel(SOURCE, "row_sum_streamed", shape.defines(nvrtc.element_type(x_MN.dtype), aligned=aligned))
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)
    lanes, length = shape.lanes, ctypes.c_int(n)

    def launch() -> Tensor:
        nvrtc.launch(kernel, m, lanes, x_MN.data_ptr(), out_M.data_ptr(), length)
        return out_M

    return launch
