"""CUDA C++ kernels of `reshape_elementwise`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import interleave, nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.transpose.cuda import bind_vectors
from kernelviz.ops.transpose.one_row import bind_one_row

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
TILE = 64
"""Rows and columns of a tile in shared memory that is accessed element by element."""
SQUARES = 16
"""Width and height of a block of the other kernels, in squares of 16-byte vectors."""


def bind_tile(x_MN: Tensor) -> Launch:
    """Tiles through shared memory, of any size; raises BadField for a matrix that is not contiguous."""
    return _bind("reshape_tile", x_MN, TILE)


def bind_registers(x_MN: Tensor) -> Launch:
    """16-byte vectors, transposed in registers; `bind_tile` where rows of x or of y do not start on 16 bytes."""
    return _bind_vec16("reshape_registers", x_MN)


def bind_squares(x_MN: Tensor) -> Launch:
    """As `bind_registers`, with the vectors exchanged through shared memory."""
    return _bind_vec16("reshape_squares", x_MN)


def bind_vec16(x_MN: Tensor) -> Launch:
    """The transposition's kernel of 16-byte vectors for rows of any length, with relu; `bind_tile` for less than 16 bytes."""
    return bind_vectors(x_MN, relu=True) or bind_tile(x_MN)


def bind_interleave(x_MN: Tensor) -> Launch:
    """The transposition's kernel for few rows or few columns, with relu; relu for one; `bind_vec16` for other matrices."""
    return bind_one_row(x_MN, relu=True) or interleave.bind_interleave(x_MN, relu=True) or bind_vec16(x_MN)


def _bind_vec16(name: str, x_MN: Tensor) -> Launch:
    m, n = x_MN.shape
    width = 16 // x_MN.element_size()
    if m % width or n % width or x_MN.data_ptr() % 16:
        return bind_tile(x_MN)
    return _bind(name, x_MN, SQUARES * width)


def _bind(name: str, x_MN: Tensor, tile: int) -> Launch:
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    y_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    element = nvrtc.element_type(x_MN.dtype)
    # One instruction applies relu to two numbers of 16 bits.
    pair = {"float": "float", "__half": "__half2", "__nv_bfloat16": "__nv_bfloat162"}[element]
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": element, "TWO": pair})
    across = -(-n // tile)
    blocks = across * -(-m // tile)
    pointers = (x_MN.data_ptr(), y_NM.data_ptr())
    sizes = (ctypes.c_longlong(m), ctypes.c_longlong(n), ctypes.c_int(across))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, 256, *pointers, *sizes)
        return y_NM

    return launch
