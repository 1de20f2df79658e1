"""CUDA C++ kernel of `row_sum` and `argmax` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_slabs import ONE_SLAB, SlabRing, slab_kernel
from kernelviz.ops.kernels.vec16 import aligned
from kernelviz.ops.row_reduction.cuda import bind_adaptive

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"


def bind_slab(x_MN: Tensor, argmax: bool, *, ring: SlabRing = ONE_SLAB) -> Launch:
    """Whole rows of a contiguous matrix (M, N) as one piece a block; rows of more than 2 KiB as `bind_adaptive`.

    So is a matrix that does not start on 16 bytes. `ring`: how pieces pass through shared memory. Raises BadField for a matrix
    that is not contiguous.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    compiled = None
    if aligned(x_MN):
        defines = {"ARGMAX": "1"} if argmax else {}
        compiled = slab_kernel(SOURCE, "row_slab", x_MN, defines=defines, ring=ring)
    if compiled is None:
        return bind_adaptive(x_MN, argmax)
    out_M = torch.empty(m, dtype=torch.int64 if argmax else x_MN.dtype, device=x_MN.device)
    arguments = (x_MN.data_ptr(), out_M.data_ptr(), ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        compiled.launch(*arguments)
        return out_M

    return launch
