"""CUDA C++ kernel that copies the rows that ids name, a block each, bound to tensors."""

from __future__ import annotations

import ctypes
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 256
"""The most threads of a block."""
VECTOR_TYPES = {2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}


def vector_bytes(x_VD: Tensor) -> int:
    """The widest vector, at most 16 bytes, that every row starts on and is a whole number of."""
    return gcd(x_VD.shape[1] * x_VD.element_size(), x_VD.data_ptr(), 16)


def bind_row(x_VD: Tensor, ids_T: Tensor, *, vectors: bool = True) -> Launch:
    """One block a row, in the widest vectors or in single elements; raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    width = vector_bytes(x_VD) if vectors else x_VD.element_size()
    (t,), d = ids_T.shape, x_VD.shape[1]
    a_row = d * x_VD.element_size() // width
    threads = min(THREADS, -(-a_row // 32) * 32)
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    kernel = nvrtc.kernel(SOURCE, "gather_row", {"VECTOR": VECTOR_TYPES[width]})
    pointers, size = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr()), ctypes.c_int(a_row)

    def launch() -> Tensor:
        nvrtc.launch(kernel, t, threads, *pointers, size)
        return out_TD

    return launch
