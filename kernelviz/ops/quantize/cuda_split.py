"""CUDA C++ kernels of the quantising ops for a few long rows, which several blocks share, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.split_rows import BLOCKS_PER_MULTIPROCESSOR, VEC16_BYTES, RowSplit, row_split
from kernelviz.ops.quantize.cuda import bind_rows
from kernelviz.ops.quantize.reference import SMALLEST, largest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_split.cu"
BLOCKS_SHIFTED = 3
"""Blocks an SM of rows that begin anywhere beside a weight: with four, the compiler spills."""


def split_of(m: int, n: int, itemsize_bytes: int, count: int, *, weighted: bool) -> tuple[RowSplit, int]:
    """How rows are divided on a GPU of `count` SMs, and blocks an SM.

    >>> split_of(19, 24_846_327, 2, 132, weighted=True), split_of(19, 24_846_327, 2, 132, weighted=False)
    ((RowSplit(parts=20, lanes=512, vectors=2), 3), (RowSplit(parts=27, lanes=512, vectors=2), 4))
    """
    split = row_split(m, n, itemsize_bytes, count)
    if not weighted or n * itemsize_bytes % VEC16_BYTES == 0:
        return split, BLOCKS_PER_MULTIPROCESSOR
    parts = min(split.parts, max(1, BLOCKS_SHIFTED * count // m))
    return replace(split, parts=parts), BLOCKS_SHIFTED


def bind_split(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """Several blocks a row, in two launches; rows that are not few or not long as `bind_rows`. Errors: those of `bind_rows`."""
    import torch

    m, n = x_MN.shape
    split, blocks_an_sm = split_of(m, n, x_MN.element_size(), multiprocessors(x_MN.device), weighted=w_N is not None)
    if split.parts == 1:
        return bind_rows(x_MN, w_N, target, eps=eps)
    for name, tensor in ({"x_MN": x_MN} | ({} if w_N is None else {"w_N": w_N})).items():
        require_contiguous(**{name: tensor})
        if tensor.data_ptr() % VEC16_BYTES:
            raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")
    defines = split.defines(x_MN) | {
        "INT8": str(int(target == "int8")),
        "NORM": str(int(w_N is not None)),
        "SPLIT_BLOCKS": str(blocks_an_sm),
    }
    statistics_of = nvrtc.kernel(SOURCE, "quantize_parts", defines)
    quantize = nvrtc.kernel(SOURCE, "quantize_from_parts", defines)
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    partials = torch.empty((m, split.parts, 2), dtype=torch.float32, device=x_MN.device)
    blocks, lanes = m * split.parts, split.lanes
    read = (x_MN.data_ptr(), 0 if w_N is None else w_N.data_ptr(), partials.data_ptr())
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(split.parts))
    written = (q_MN.data_ptr(), scale_M.data_ptr())
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target)))

    def launch(alive: object = (x_MN, w_N, partials)) -> tuple[Tensor, ...]:
        nvrtc.launch(statistics_of, blocks, lanes, *read, *sizes)
        nvrtc.launch(quantize, blocks, lanes, *read, *written, *sizes, *numbers)
        return q_MN, scale_M

    return launch
