"""CUDA C++ kernel of `rmsnorm`, `layernorm` and `add_rmsnorm` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.row_slabs import ONE_SLAB, RegisterArrays, SlabRing, slab_kernel
from kernelviz.ops.normalisation.cuda import NormInputs, bind_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(inputs: NormInputs, *, ring: SlabRing = ONE_SLAB) -> Launch:
    """Whole rows as one piece a block; rows of more than 2 KiB as `bind_rows`. Errors: those of `bind_rows`.

    `ring`: how pieces pass through shared memory.
    """
    import torch

    inputs.check()
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    tensors = 1 if inputs.r_MN is None else 2
    arrays = RegisterArrays(numbers=1, stored=1 if inputs.b_N is None else 2)
    defines = inputs.defines()
    compiled = slab_kernel(SOURCE, "normalise_slabs", x_MN, defines=defines, arrays=arrays, tensors=tensors, ring=ring)
    if compiled is None:
        return bind_rows(inputs)
    y_MN = torch.empty_like(x_MN)
    s_MN = None if inputs.r_MN is None else torch.empty_like(x_MN)
    given = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    pointers = tuple(0 if t is None else t.data_ptr() for t in given)
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(inputs.eps))
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch() -> Tensor | tuple[Tensor, ...]:
        compiled.launch(*arguments)
        return outputs

    return launch
