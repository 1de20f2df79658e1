"""CUDA C++ kernels of the activations, bound to tensors."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_launch import FlatLaunch, one_element
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import aligned
from kernelviz.ops.kernels.vectors_and_rest import vectors_and_rest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
FEW_ELEMENTS = 2**16


def bind_scalar(x_N: Tensor, apply: str) -> Launch:
    """One element a thread; raises BadField for a vector that is not contiguous."""
    return _bind("activation_scalar", x_N, apply, one_element(x_N))


def bind_vec16(x_N: Tensor, apply: str) -> Launch:
    """16 bytes a thread; one element a thread for a view that does not start on 16 bytes. Raises BadField as above."""
    if not aligned(x_N):
        return bind_scalar(x_N, apply)
    return _bind("activation_vec16", x_N, apply, vectors_and_rest(x_N))


def bind_fast(x_N: Tensor, apply: str) -> Launch:
    """16 bytes a thread, but one element a thread for few elements, which take the latency of one load. Raises BadField as above.

    H200, silu in bf16: 451 elements take 1.15 us with one a thread and 1.63 with a vector a thread and the rest behind them;
    40,001 take 1.44 and 1.59.
    """
    return (bind_scalar if x_N.numel() <= FEW_ELEMENTS else bind_vec16)(x_N, apply)


def _bind(name: str, x_N: Tensor, apply: str, flat: FlatLaunch) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name, {"ELEMENT": nvrtc.element_type(x_N.dtype), "APPLY": apply, **flat.defines})
    pointers = (x_N.data_ptr(), out_N.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, flat.blocks, flat.threads, *pointers, flat.size)
        return out_N

    return launch
