"""CUDA C++ kernel of `norm_activation` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.row_slabs import ONE_SLAB, RegisterArrays, SlabRing, slab_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.norm_activation.cuda import bind_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float, ring: SlabRing = ONE_SLAB) -> Launch:
    """Whole rows of a contiguous matrix (M, N) as one piece a block; rows of more than 2 KiB as `bind_rows`.

    `ring`: how pieces pass through shared memory. Errors: BadField for tensors that are not contiguous or do not start on 16
    bytes.
    """
    import torch

    require_vec16(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    compiled = slab_kernel(SOURCE, "layernorm_gelu_slabs", x_MN, arrays=RegisterArrays(numbers=1, stored=2), ring=ring)
    if compiled is None:
        return bind_rows(x_MN, w_N, b_N, eps=eps)
    y_MN = torch.empty_like(x_MN)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps))

    def launch() -> Tensor:
        compiled.launch(*arguments)
        return y_MN

    return launch
