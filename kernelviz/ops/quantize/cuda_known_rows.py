"""CUDA C++ kernel of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8` for few rows of known length with a block each,
bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.known_lengths import KnownTile, block_tile
from kernelviz.ops.kernels.row_lanes import row_lanes
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.quantize.cuda_slab import bind_slab, format_defines
from kernelviz.ops.quantize.reference import SMALLEST, largest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_rows.cu"


def defines(x_MN: Tensor, tile: KnownTile, target: str, *, weighted: bool) -> dict[str, str]:
    """The macros of the kernel for a matrix that starts on 16 bytes."""
    macros = {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | tile.defines(x_MN.shape[1])
    return macros | format_defines(target, weighted=weighted)


def bind_rows_or_slab(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """A block for each of few rows of a contiguous matrix (M, N), whose length is a constant; others as `bind_slab`.

    Errors: BadField for tensors that are not contiguous or do not start on 16 bytes.
    """
    import torch

    require_vec16(**({"x_MN": x_MN} if w_N is None else {"x_MN": x_MN, "w_N": w_N}))
    m, n = x_MN.shape
    tile = block_tile(m, n, x_MN.element_size())
    if tile is None or row_lanes(m, n, x_MN.element_size()) is not None:
        return bind_slab(x_MN, w_N, target, eps=eps)
    kernel = nvrtc.kernel(SOURCE, "quantize_known_rows", defines(x_MN, tile, target, weighted=w_N is not None))
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), 0 if w_N is None else w_N.data_ptr(), q_MN.data_ptr(), scale_M.data_ptr())
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target) / SMALLEST))
    threads = tile.threads

    def launch(alive: object = (x_MN, w_N)) -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, m, threads, *pointers, *numbers)
        return q_MN, scale_M

    return launch
