"""CUDA C++ kernels of the normalisations for a few long rows, bound to tensors: two launches, several blocks a row."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.split_rows import row_split
from kernelviz.ops.normalisation.cuda import NormInputs, bind_rows

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_split.cu"


def bind_split(inputs: NormInputs) -> Launch:
    """Several blocks a row; as `bind_rows` where a row has one. Errors: those of `bind_rows`."""
    import torch

    inputs.check()
    x_MN, r_MN, w_N, b_N = inputs.x_MN, inputs.r_MN, inputs.w_N, inputs.b_N
    m, n = x_MN.shape
    split = row_split(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    if split.parts == 1:
        return bind_rows(inputs)
    defines = inputs.defines() | split.defines(x_MN)
    first = nvrtc.kernel(SOURCE, "moments_of_parts", defines)
    second = nvrtc.kernel(SOURCE, "normalise_parts", defines)
    # Number, mean and squared distances of the elements of each part.
    partials = torch.empty(m * split.parts, 3, dtype=torch.float32, device=x_MN.device)
    y_MN = torch.empty_like(x_MN)
    s_MN = None if r_MN is None else torch.empty_like(x_MN)
    normalised_MN = x_MN if s_MN is None else s_MN
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(split.parts))
    blocks, threads, eps = m * split.parts, split.lanes, ctypes.c_float(inputs.eps)
    summed = _pointers(x_MN, r_MN, s_MN, partials)
    written = _pointers(normalised_MN, w_N, b_N, partials, y_MN)
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch() -> Tensor | tuple[Tensor, ...]:
        assert partials.numel()  # the launch keeps the tensor alive
        nvrtc.launch(first, blocks, threads, *summed, *sizes)
        nvrtc.launch(second, blocks, threads, *written, *sizes, eps)
        return outputs

    return launch


def _pointers(*tensors: Tensor | None) -> tuple[int, ...]:
    return tuple(0 if t is None else t.data_ptr() for t in tensors)
