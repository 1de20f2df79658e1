"""CUDA C++ kernels of `dropout`, bound to tensors."""

from __future__ import annotations

import ctypes
import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 128


def bind_scalar(x_N: Tensor, p: float) -> Launch:
    """An element a thread. Each call uses a new seed; a captured call keeps the seed of its capture.

    Raises BadField for a vector that is not contiguous.
    """
    return _bind("dropout_scalar", x_N, p, one_element(x_N))


def bind_philox(x_N: Tensor, p: float) -> Launch:
    """A 16-byte vector for each call of Philox; seeds as `bind_scalar`.

    Raises BadField for a vector that is not contiguous or does not start on 16 bytes.
    """
    if x_N.data_ptr() % 16:
        raise BadField("input x_N", hex(x_N.data_ptr()), "this kernel reads 16-byte vectors; call .clone() first")
    size_bytes = x_N.numel() * x_N.element_size()
    vectors = 1 if x_N.element_size() == 4 else 2  # as in the kernel
    blocks = -(-size_bytes // (16 * vectors * THREADS))
    return _bind("dropout_vec16", x_N, p, FlatLaunch(blocks, THREADS, ctypes.c_longlong(x_N.numel()), {}))


def _bind(name: str, x_N: Tensor, p: float, flat: FlatLaunch) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_N.dtype), **flat.defines})
    pointers = (x_N.data_ptr(), out_N.data_ptr())
    given = (flat.size, ctypes.c_uint(round(p * 2**32)), ctypes.c_float(1 / (1 - p)))
    seeds = itertools.count(1)

    def launch() -> Tensor:
        seed = ctypes.c_ulonglong(next(seeds))
        nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, *given, seed)
        return out_N

    return launch
