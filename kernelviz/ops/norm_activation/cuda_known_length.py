"""CUDA C++ kernels of `norm_activation` for few rows of known length, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.known_lengths import KnownTile, block_tile
from kernelviz.ops.kernels.row_lanes import RowLanes, row_lanes
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.norm_activation.cuda_slab import bind_slab

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_length.cu"
ROWS_SOURCE = Path(__file__).parent / "cuda_known_rows.cu"


def known_length_defines(x_MN: Tensor, lanes: RowLanes) -> dict[str, str]:
    """The macros of the kernel for a matrix that starts on 16 bytes."""
    return {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | lanes.defines(x_MN.shape[1], x_MN.element_size())


def known_rows_defines(x_MN: Tensor, tile: KnownTile) -> dict[str, str]:
    """The macros of the kernel of a block a row."""
    macros = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "CENTRED": "1", "ADDS": "0"}
    return macros | tile.defines(x_MN.shape[1])


def bind_few_or_slab(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Lanes of a warp, or a block, for each of few short rows of a contiguous matrix (M, N); others as `bind_slab`.

    Errors: those of it.
    """
    import torch

    require_vec16(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    lanes, tile = row_lanes(m, n, x_MN.element_size()), block_tile(m, n, x_MN.element_size())
    if lanes is not None:
        kernel = nvrtc.kernel(SOURCE, "layernorm_gelu_known_length", known_length_defines(x_MN, lanes))
        blocks, threads = lanes.blocks, lanes.threads
    elif tile is not None:
        kernel = nvrtc.kernel(ROWS_SOURCE, "layernorm_gelu_known_rows", known_rows_defines(x_MN, tile))
        blocks, threads = tile.blocks(m), tile.threads
    else:
        return bind_slab(x_MN, w_N, b_N, eps=eps)
    y_MN = torch.empty_like(x_MN)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    numbers = (ctypes.c_int(m - 1), ctypes.c_float(eps))

    def launch(alive: object = (x_MN, w_N, b_N)) -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *numbers)
        return y_MN

    return launch
