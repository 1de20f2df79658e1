"""CUDA C++ kernels of `cross_entropy` for a few long rows, bound to tensors: several blocks share a row, in two launches."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.cross_entropy import cuda
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.row_tiles import require_vec16
from kernelviz.ops.kernels.split_rows import RowSplit, row_split

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_split.cu"


def bind_loss(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses, several blocks a row of contiguous logits (M, V); as `cuda.bind_loss` where a row has one.

    Raises BadField for tensors that are not contiguous, and for logits that do not start on 16 bytes.
    """
    split = _split(logits_MV, labels_M)
    if split.parts == 1:
        return cuda.bind_loss(logits_MV, labels_M)
    return _bind(logits_MV, labels_M, split, gradient=False)


def bind_with_grad(logits_MV: Tensor, labels_M: Tensor) -> Launch:
    """The losses and their gradient; as `cuda.bind_row_with_grad` where a row has one block. Errors as above."""
    split = _split(logits_MV, labels_M)
    if split.parts == 1:
        return cuda.bind_row_with_grad(logits_MV, labels_M)
    return _bind(logits_MV, labels_M, split, gradient=True)


def _split(logits_MV: Tensor, labels_M: Tensor) -> RowSplit:
    require_vec16(logits_MV=logits_MV)
    require_contiguous(labels_M=labels_M)
    m, n = logits_MV.shape
    return row_split(m, n, logits_MV.element_size(), multiprocessors(logits_MV.device))


def _bind(logits_MV: Tensor, labels_M: Tensor, split: RowSplit, *, gradient: bool) -> Launch:
    import torch

    m, n = logits_MV.shape
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV) if gradient else None
    # Maximum and sum of exponentials of each part.
    partials = torch.empty(m * split.parts, 2, dtype=torch.float32, device=logits_MV.device)
    name = "cross_entropy_with_grad_from_parts" if gradient else "cross_entropy_from_parts"
    first = nvrtc.kernel(SOURCE, "cross_entropy_parts", split.defines(logits_MV))
    second = nvrtc.kernel(SOURCE, name, split.defines(logits_MV))
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(split.parts))
    blocks, threads = m * split.parts, split.lanes
    outputs = (loss_M,) if dx_MV is None else (loss_M, dx_MV)
    results = tuple(t.data_ptr() for t in outputs)

    def launch() -> Tensor | tuple[Tensor, ...]:
        logits, parts = logits_MV.data_ptr(), partials.data_ptr()
        nvrtc.launch(first, blocks, threads, logits, parts, *sizes)
        nvrtc.launch(second, blocks if gradient else m, threads, logits, labels_M.data_ptr(), parts, *results, *sizes)
        return loss_M if dx_MV is None else (loss_M, dx_MV)

    return launch
