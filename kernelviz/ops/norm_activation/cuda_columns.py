"""CUDA C++ kernel of `norm_activation` by clusters that stay on their columns."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops import nvrtc
from kernelviz.ops.norm_activation import cuda
from kernelviz.ops.op import Launch

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"
SHORTEST_WORDS = 128
"""Shorter rows share a block of `cuda.bind_rows`."""
THREADS = 768
"""An SM, with 80 registers each: eight for the weight and the bias beside each word."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads of a block, 16-byte words each has of a row, blocks that share a row, rows that are under way, blocks an SM."""

    lanes: int
    words: int
    cluster: int
    stages: int
    blocks: int

    @property
    def shared_bytes(self) -> int:
        return self.lanes * self.words * self.stages * cuda.WORD_BYTES


def columns_shape(words: int) -> Shape | None:
    """How clusters that stay take rows of that many 16-byte words; None for short ones, and those that 16 blocks cannot hold.

    Up to 128 KiB a block has 16 KiB of a row, and an SM three blocks; beyond, 33 KiB and one. Either way the stages take 192 KiB.

    >>> columns_shape(256), columns_shape(4096)
    (Shape(lanes=64, words=4, cluster=1, stages=4, blocks=12), Shape(lanes=256, words=4, cluster=4, stages=4, blocks=3))
    >>> columns_shape(16384), columns_shape(64)
    (Shape(lanes=704, words=3, cluster=8, stages=6, blocks=1), None)
    """
    if words < SHORTEST_WORDS:
        return None
    for cluster in (1, 2, 4, 8):
        if words <= 1024 * cluster:
            lanes = 32 * -(-words // (32 * 4 * cluster))
            return Shape(lanes, 4, cluster, 4, THREADS // lanes)
    for cluster in (8, 16):
        lanes = 32 * -(-words // (32 * 3 * cluster))
        if lanes <= 704:
            return Shape(lanes, 3, cluster, 6, 1)
    return None


def bind_columns(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Blocks that stay, rows that start on 16 bytes; others, and short or very long ones, as `bind_cluster`. Errors: BadField."""
    import torch

    cuda._check(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    words, rest = divmod(n, cuda.WORD_BYTES // x_MN.element_size())
    shape = None if rest else columns_shape(words)
    if shape is None:
        return cuda.bind_cluster(x_MN, w_N, b_N, eps=eps)
    defines = {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "ROW_LANES": str(shape.lanes),
        "ROW_WORDS": str(shape.words),
        "ROW_CLUSTER": str(shape.cluster),
        "ROW_STAGES": str(shape.stages),
        "ROW_BLOCKS": str(shape.blocks),
        "ROW_FULL": "true" if words == shape.lanes * shape.words * shape.cluster else "false",
    }
    lanes, cluster, shared = shape.lanes, shape.cluster, shape.shared_bytes
    kernel = nvrtc.kernel(SOURCE, "layernorm_gelu_columns", defines, cluster=cluster, shared_bytes=shared)
    blocks = min(nvrtc.resident(kernel, lanes, cluster=cluster, shared_bytes=shared), cluster * m)
    y_MN = torch.empty_like(x_MN)
    claims = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps), claims.data_ptr())

    def launch() -> Tensor:
        assert claims.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, lanes, *arguments, cluster=cluster, shared_bytes=shared)
        return y_MN

    return launch
