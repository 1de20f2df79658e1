"""CUDA C++ kernel of `pointwise_chain` for few elements, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES
from kernelviz.ops.pointwise_chain.at_once import THREADS, at_once
from kernelviz.ops.pointwise_chain.cuda import bind_rows, reciprocal_of

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_at_once.cu"


def bind_fused(x_MN: Tensor, s_KN: Tensor, b_KN: Tensor, *, packed: bool = False) -> Launch:
    """All steps in one kernel that loads the factors of few elements at once; more elements, and tensors that do not start on 16
    bytes, as `bind_rows`. Errors: BadField for tensors that are not contiguous.
    """
    import torch

    require_contiguous(x_MN=x_MN, s_KN=s_KN, b_KN=b_KN)
    (m, n), steps = x_MN.shape, s_KN.shape[0]
    shape = at_once(m, n, steps, x_MN.element_size(), packed=packed)
    if shape is None or any(tensor.data_ptr() % VEC16_BYTES for tensor in (x_MN, s_KN, b_KN)):
        return bind_rows(x_MN, s_KN, b_KN, packed=packed)
    out_MN = torch.empty_like(x_MN)
    macros = {"PACKED": int(packed), "STEPS": steps, "UNIT": shape.unit}
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | {macro: str(value) for macro, value in macros.items()}
    kernel = nvrtc.kernel(SOURCE, "chain_at_once", defines)
    units = n // shape.unit
    factor, shift = reciprocal_of(units)
    pointers = (x_MN.data_ptr(), s_KN.data_ptr(), b_KN.data_ptr(), out_MN.data_ptr())
    sizes = (ctypes.c_int(shape.threads - 1), ctypes.c_int(units), ctypes.c_uint(factor), ctypes.c_int(shift))
    blocks = -(-shape.threads // THREADS)

    def launch(alive: object = (x_MN, s_KN, b_KN)) -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *pointers, *sizes)
        return out_MN

    return launch
