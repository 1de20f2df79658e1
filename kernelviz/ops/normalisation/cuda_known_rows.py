"""CUDA C++ kernel of `rmsnorm`, `layernorm` and `add_rmsnorm` for rows of known length, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.known_lengths import known_tile
from kernelviz.ops.normalisation.cuda import NormInputs, bind_columns

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_rows.cu"


def bind(inputs: NormInputs) -> Launch:
    """A few threads a row, loaded at once; rows that are many or long as `bind_columns`.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    import torch

    inputs.check()
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    tile = known_tile(m, n, x_MN.element_size())
    if tile is None:
        return bind_columns(inputs)
    kernel = nvrtc.kernel(SOURCE, "normalise_known_rows", inputs.defines() | tile.defines(n))
    y_MN = torch.empty_like(x_MN)
    s_MN = None if inputs.r_MN is None else torch.empty_like(x_MN)
    tensors = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    pointers = tuple(tensor.data_ptr() for tensor in tensors if tensor is not None)
    arguments = (*pointers, ctypes.c_int(m - 1), ctypes.c_float(inputs.eps))
    blocks, threads = tile.blocks(m), tile.threads
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch(alive: object = tensors) -> Tensor | tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return outputs

    return launch
