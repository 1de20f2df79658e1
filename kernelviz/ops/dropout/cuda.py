"""CUDA C++ kernel of `dropout`, bound to tensors."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 128


def bind_philox(x_N: Tensor, p: float) -> Launch:
    """Each call uses a new seed; a captured call keeps the seed of its capture.

    Raises BadField for a vector that is not contiguous or does not start on 16 bytes.
    """
    import torch

    require_contiguous(x_N=x_N)
    if x_N.data_ptr() % 16:
        raise BadField("input x_N", hex(x_N.data_ptr()), "this kernel reads 16-byte vectors; call .clone() first")
    out_N = torch.empty_like(x_N)
    size_bytes = x_N.numel() * x_N.element_size()
    kernel = nvrtc.kernel(SOURCE, "dropout_vec16", {"ELEMENT": nvrtc.element_type(x_N.dtype)})
    vectors = 1 if x_N.element_size() == 4 else 2  # as in the kernel
    blocks = max(1, -(-size_bytes // (16 * vectors * THREADS)))
    pointers = (x_N.data_ptr(), out_N.data_ptr())
    given = (ctypes.c_longlong(x_N.numel()), ctypes.c_uint(round(p * 2**32)), ctypes.c_float(1 / (1 - p)))
    seeds = itertools.count(1)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *pointers, *given, ctypes.c_ulonglong(next(seeds)))
        return out_N

    return launch
