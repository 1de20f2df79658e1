"""CUDA C++ kernels of `softmax` for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.row_slabs import ONE_SLAB, RegisterArrays, SlabRing, slab_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.softmax.cuda import bind_row, bind_row_backward
from kernelviz.ops.softmax.short_rows import bind_short_rows_backward, divides_vector

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"
FORWARD, BACKWARD = RegisterArrays(numbers=1), RegisterArrays(stored=2)


def bind_slab(x_MN: Tensor, *, ring: SlabRing = ONE_SLAB) -> Launch:
    """Whole rows of a contiguous matrix (M, N) as one piece a block; rows of more than 2 KiB as `bind_row`.

    `ring`: how pieces pass through shared memory. Raises BadField for a matrix that is not contiguous or does not start on 16
    bytes.
    """
    import torch

    require_vec16(x_MN=x_MN)
    return _forward(x_MN, torch.empty_like(x_MN), ring) or bind_row(x_MN)


def bind_slab_backward(x_MN: Tensor, dy_MN: Tensor, *, ring: SlabRing = ONE_SLAB) -> Staged:
    """The backward pass of `bind_slab`, after its forward pass; longer rows as `bind_row_backward`. Errors as above.

    If `ring.very_short` is set, rows that divide a 16-byte vector are processed without slabs (`short_rows`).
    """
    import torch

    require_vec16(x_MN=x_MN, dy_MN=dy_MN)
    m, n = x_MN.shape
    y_MN, dx_MN = torch.empty_like(x_MN), torch.empty_like(x_MN)
    forward = _forward(x_MN, y_MN, ring)
    if forward is not None and ring.very_short is not None and divides_vector(n, x_MN.element_size()):
        return Staged(forward, bind_short_rows_backward(y_MN, dy_MN, dx_MN))
    compiled = slab_kernel(SOURCE, "softmax_backward_slab", x_MN, arrays=BACKWARD, tensors=2, ring=ring)
    if compiled is None or forward is None:
        return bind_row_backward(x_MN, dy_MN)
    pointers = (y_MN.data_ptr(), dy_MN.data_ptr(), dx_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        assert y_MN.numel()  # the launch keeps the tensor alive
        compiled.launch(*arguments)
        return dx_MN

    return Staged(forward, launch)


def _forward(x_MN: Tensor, out_MN: Tensor, ring: SlabRing) -> Launch | None:
    m, n = x_MN.shape
    compiled = slab_kernel(SOURCE, "softmax_slab", x_MN, arrays=FORWARD, ring=ring)
    if compiled is None:
        return None
    arguments = (x_MN.data_ptr(), out_MN.data_ptr(), ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        compiled.launch(*arguments)
        return out_MN

    return launch
