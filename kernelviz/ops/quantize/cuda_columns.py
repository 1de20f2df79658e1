"""CUDA C++ kernels of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8` by clusters that stay on their columns."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.op import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.persistent_columns import columns_shape
from kernelviz.ops.quantize import cuda
from kernelviz.ops.quantize.reference import SMALLEST, largest

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"


def bind_columns(x_MN: Tensor, w_N: Tensor | None, target: str, *, eps: float = 0.0) -> Launch:
    """Blocks that stay, rows that start on 16 bytes; others, and short or very long ones, as `bind_cluster`. Errors: BadField."""
    import torch

    m, n = x_MN.shape
    words, aligned = cuda._words(x_MN, w_N), n % (cuda.WORD_BYTES // x_MN.element_size()) == 0
    shape = columns_shape(words, weighted=w_N is not None) if aligned else None
    if shape is None:
        return cuda.bind_cluster(x_MN, w_N, target, eps=eps)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "INT8": str(int(target == "int8")),
        "NORM": str(int(w_N is not None)),
    } | shape.defines(words)
    lanes, cluster, shared = shape.lanes, shape.cluster, shape.shared_bytes
    kernel = nvrtc.kernel(SOURCE, "quantize_columns", defines, cluster=cluster, shared_bytes=shared)
    blocks = min(nvrtc.resident(kernel, lanes, cluster=cluster, shared_bytes=shared), cluster * m)
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    claims = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    weight = 0 if w_N is None else w_N.data_ptr()
    numbers = (ctypes.c_float(eps), ctypes.c_float(SMALLEST), ctypes.c_float(largest(target)))
    pointers = (x_MN.data_ptr(), weight, q_MN.data_ptr(), scale_M.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), *numbers, claims.data_ptr())

    def launch() -> tuple[Tensor, ...]:
        assert claims.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, lanes, *arguments, cluster=cluster, shared_bytes=shared)
        return q_MN, scale_M

    return launch
