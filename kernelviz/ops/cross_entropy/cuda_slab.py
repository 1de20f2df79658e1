"""CUDA C++ kernels of `cross_entropy` and of its gradient for many short rows, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.cross_entropy import cuda
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_slabs import ONE_SLAB, RegisterArrays, SlabRing, slab_kernel
from kernelviz.ops.kernels.row_tiles import require_vec16

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_slab.cu"
STAGES = SlabRing(threads=128, stages=3, slab_bytes=8 * 1024)
"""Eight blocks an SM have 128 KiB in flight while each processes a slab. No row stays in registers, because `cuda_known_length`
has those of at most 64 bytes, and `cuda_row` those of whole vectors."""
NUMBERS = RegisterArrays(numbers=1)
"""Of a row, a thread's part. The backward pass does not need all of it at once, but spills with fewer registers."""


def bind_loss(logits_MV: Tensor, labels_M: Tensor, *, ring: SlabRing = ONE_SLAB) -> Launch:
    """The losses, whole rows of contiguous logits (M, V) as one piece a block; rows of more than 2 KiB as `cuda.bind_loss`.

    `ring`: how pieces pass through shared memory. Raises BadField for tensors that are not contiguous, and for logits that do not
    start on 16 bytes.
    """
    _require(logits_MV, labels_M)
    return _loss(logits_MV, labels_M, None, ring) or cuda.bind_loss(logits_MV, labels_M)


def bind_with_grad(logits_MV: Tensor, labels_M: Tensor, *, ring: SlabRing = ONE_SLAB) -> Launch:
    """The losses and their gradient; longer rows as `cuda.bind_row_with_grad`. Errors as above."""
    import torch

    _require(logits_MV, labels_M)
    m, n = logits_MV.shape
    compiled = slab_kernel(SOURCE, "cross_entropy_with_grad_slab", logits_MV, arrays=NUMBERS, ring=ring)
    if compiled is None:
        return cuda.bind_row_with_grad(logits_MV, labels_M)
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV)
    pointers = tuple(t.data_ptr() for t in (logits_MV, labels_M, loss_M, dx_MV))
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> tuple[Tensor, Tensor]:
        compiled.launch(*arguments)
        return loss_M, dx_MV

    return launch


def bind_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor, *, ring: SlabRing = ONE_SLAB) -> Staged:
    """The gradient of the logits, after a forward pass that writes ln Σ exp; longer rows as `cuda.bind_backward`."""
    import torch

    _require(logits_MV, labels_M)
    require_contiguous(dloss_M=dloss_M)
    m, n = logits_MV.shape
    sums_M = torch.empty(m, dtype=torch.float32, device=logits_MV.device)
    forward = _loss(logits_MV, labels_M, sums_M, ring)
    compiled = slab_kernel(SOURCE, "cross_entropy_backward_slab", logits_MV, arrays=NUMBERS, ring=ring)
    if forward is None or compiled is None:
        return cuda.bind_backward(logits_MV, labels_M, dloss_M)
    dx_MV = torch.empty_like(logits_MV)
    pointers = tuple(t.data_ptr() for t in (logits_MV, labels_M, sums_M, dloss_M, dx_MV))
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        assert sums_M.numel()  # the launch keeps the tensor alive
        compiled.launch(*arguments)
        return dx_MV

    return Staged(forward, launch)


def _require(logits_MV: Tensor, labels_M: Tensor) -> None:
    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)


def _loss(logits_MV: Tensor, labels_M: Tensor, sums_M: Tensor | None, ring: SlabRing) -> Launch | None:
    import torch

    m, n = logits_MV.shape
    compiled = slab_kernel(SOURCE, "cross_entropy_slab", logits_MV, arrays=NUMBERS, ring=ring)
    if compiled is None:
        return None
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    saved = 0 if sums_M is None else sums_M.data_ptr()
    pointers = (logits_MV.data_ptr(), labels_M.data_ptr(), loss_M.data_ptr(), saved)
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        compiled.launch(*arguments)
        return loss_M

    return launch
