"""CUDA C++ kernels of `cross_entropy` and of its gradient for rows of at most 64 bytes, compiled for one length."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.cross_entropy import cuda_slab
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_known_length.cu"
LONGEST_ROW_BYTES = 64
"""A thread has four 16-byte vectors of logits, whether of one row or of several."""
THREADS = 128
THREADS_OF_MULTIPROCESSOR = 2048
MOST_ROWS = 4


@dataclass(frozen=True, slots=True)
class ThreadRows:
    """Rows of a thread, bytes of an access to a row, accesses of a row."""

    rows: int
    unit_bytes: int
    units: int

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """Macros that a kernel is compiled with for rows of this matrix."""
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "SLAB_UNIT": str(self.unit_bytes),
            "SLAB_UNITS": str(self.units),
            "SLAB_FULL": "1",
            "SLAB_LANES": "1",
            "SLAB_ROWS": str(self.rows),
            "SLAB_THREADS": str(THREADS),
        }


def thread_rows(m: int, n: int, itemsize_bytes: int, count: int) -> ThreadRows | None:
    """How threads share m rows of n elements on a GPU of `count` SMs; None for rows of more than 64 bytes.

    A row a thread where the GPU holds that many threads at once; otherwise up to four, so that enough loads are in flight.

    >>> thread_rows(1000, 3, 2, 132), thread_rows(10**7, 1, 2, 132)
    (ThreadRows(rows=1, unit_bytes=2, units=3), ThreadRows(rows=4, unit_bytes=2, units=1))
    >>> thread_rows(10**7, 8, 4, 132), thread_rows(1, 17, 4, 132)
    (ThreadRows(rows=2, unit_bytes=16, units=2), None)
    """
    row_bytes = n * itemsize_bytes
    if row_bytes > LONGEST_ROW_BYTES:
        return None
    rows = 1
    while m > rows * count * THREADS_OF_MULTIPROCESSOR and 2 * rows <= min(MOST_ROWS, LONGEST_ROW_BYTES // row_bytes):
        rows *= 2
    unit_bytes = math.gcd(VEC16_BYTES, row_bytes)
    return ThreadRows(rows, unit_bytes, row_bytes // unit_bytes)


def bind_loss(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses, a thread a row of contiguous logits (M, V); rows of more than 64 bytes as `cuda_slab.bind_loss`.

    Raises BadField for tensors that are not contiguous, and for logits that do not start on 16 bytes.
    """
    _require(logits_MV, labels_M)
    return _loss(logits_MV, labels_M) or cuda_slab.bind_loss(logits_MV, labels_M)


def bind_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses and their gradient; longer rows as `cuda_slab.bind_with_grad`. Errors as above."""
    import torch

    _require(logits_MV, labels_M)
    compiled = _kernel("cross_entropy_with_grad_known_length", logits_MV)
    if compiled is None:
        return cuda_slab.bind_with_grad(logits_MV, labels_M)
    loss_M = torch.empty(logits_MV.shape[0], dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV)
    kernel, blocks, m = compiled
    arguments = (*(t.data_ptr() for t in (logits_MV, labels_M, loss_M, dx_MV)), m)

    def launch() -> tuple[Tensor, Tensor]:
        nvrtc.launch(kernel, blocks, THREADS, *arguments)
        return loss_M, dx_MV

    return launch


def bind_backward(logits_MV: Tensor, labels_M: Tensor, dloss_M: Tensor) -> Staged:
    """The gradient of the logits, from them alone; longer rows as `cuda_slab.bind_backward`.

    H200: 3,090,920 rows of 8 fp16 took 30.7 us when ln Σ exp of each row was read, too, and take 28.4 in torch.compile, which
    reads x - ln Σ exp in place of the logits.
    """
    import torch

    _require(logits_MV, labels_M)
    require_contiguous(dloss_M=dloss_M)
    forward = _loss(logits_MV, labels_M)
    compiled = _kernel("cross_entropy_backward_known_length", logits_MV)
    if forward is None or compiled is None:
        return cuda_slab.bind_backward(logits_MV, labels_M, dloss_M)
    dx_MV = torch.empty_like(logits_MV)
    kernel, blocks, m = compiled
    arguments = (*(t.data_ptr() for t in (logits_MV, labels_M, dloss_M, dx_MV)), m)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments)
        return dx_MV

    return Staged(forward, launch)


def _require(logits_MV: Tensor, labels_M: Tensor) -> None:
    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)


def _kernel(name: str, logits_MV: Tensor) -> tuple[Any, int, ctypes.c_longlong] | None:
    """The kernel, its blocks and its last argument; None for rows of more than 64 bytes."""
    m, n = logits_MV.shape
    tile = thread_rows(m, n, logits_MV.element_size(), multiprocessors(logits_MV.device))
    if tile is None:
        return None
    kernel = nvrtc.kernel(SOURCE, name, tile.defines(logits_MV))
    return kernel, -(-m // (THREADS * tile.rows)), ctypes.c_longlong(m)


def _loss(logits_MV: Tensor, labels_M: Tensor) -> Launch | None:
    import torch

    compiled = _kernel("cross_entropy_known_length", logits_MV)
    if compiled is None:
        return None
    loss_M = torch.empty(logits_MV.shape[0], dtype=logits_MV.dtype, device=logits_MV.device)
    kernel, blocks, m = compiled
    arguments = (logits_MV.data_ptr(), labels_M.data_ptr(), loss_M.data_ptr(), m)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments)
        return loss_M

    return launch
