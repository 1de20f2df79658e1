"""CUDA C++ kernel of `rmsnorm`, `layernorm` and `add_rmsnorm` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.row_slabs import THREADS, row_slab
from kernelviz.ops.normalisation.cuda import NormInputs, bind_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(inputs: NormInputs) -> Launch:
    """Whole rows as one piece a block; rows of more than 2 KiB as `bind_rows`. Errors: those of `bind_rows`."""
    import torch

    inputs.check()
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    tensors = 1 if inputs.r_MN is None else 2
    slab = row_slab(m, n, x_MN.element_size(), multiprocessors(x_MN.device), tensors=tensors)
    if slab is None:
        return bind_rows(inputs)
    kernel = nvrtc.kernel(SOURCE, "normalise_slabs", inputs.defines() | slab.defines(x_MN))
    blocks, shared_bytes = -(-m // slab.rows), tensors * slab.tensor_bytes
    y_MN = torch.empty_like(x_MN)
    s_MN = None if inputs.r_MN is None else torch.empty_like(x_MN)
    given = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    pointers = tuple(0 if t is None else t.data_ptr() for t in given)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(inputs.eps))
    arguments = (*pointers, *sizes, ctypes.c_int(slab.rows), ctypes.c_int(slab.tensor_bytes))
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch() -> Tensor | tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, THREADS, *arguments, shared_bytes=shared_bytes)
        return outputs

    return launch
