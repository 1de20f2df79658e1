"""CUDA C++ kernel of `norm_activation` by clusters that stay on their columns."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.persistent_columns import columns_tile
from kernelviz.ops.norm_activation import cuda

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"
SHORTEST_WORDS = 128
"""Shorter rows share a block of `cuda.bind_rows`."""


def bind_columns(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Blocks that stay, rows that start on 16 bytes; others, and short or very long ones, as `bind_cluster`. Errors: BadField."""
    import torch

    cuda._check(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    words, rest = divmod(n, cuda.VEC16_BYTES // x_MN.element_size())
    shape = None if rest else columns_tile(words, weighted=True)
    if shape is None:
        return cuda.bind_cluster(x_MN, w_N, b_N, eps=eps)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | shape.defines(words)
    lanes, cluster, shared = shape.lanes, shape.cluster, shape.shared_bytes
    kernel = nvrtc.kernel(SOURCE, "layernorm_gelu_columns", defines, cluster=cluster, shared_bytes=shared)
    blocks = min(nvrtc.resident(kernel, lanes, cluster=cluster, shared_bytes=shared), cluster * m)
    y_MN = torch.empty_like(x_MN)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps), tile_counter.data_ptr())

    def launch() -> Tensor:
        assert tile_counter.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, lanes, *arguments, cluster=cluster, shared_bytes=shared)
        return y_MN

    return launch
