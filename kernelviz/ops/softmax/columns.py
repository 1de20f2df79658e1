"""The CUDA C++ kernel of `softmax` by clusters that stay, bound to tensors: which blocks take which columns of a row."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops import nvrtc
from kernelviz.ops.gpu import multiprocessors
from kernelviz.ops.op import Launch
from kernelviz.ops.row_shapes import CLUSTER, LONGEST_BLOCK, LONGEST_ROW_WORDS, require_words, words_of
from kernelviz.ops.softmax.cuda import bind_cluster

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_columns.cu"
MOST_WORDS = 8
"""Of a row, a thread. With places for two rows that is all that an SM has, 1024 threads of 64 registers each."""
MOST_FAR = 7
"""Of these in shared memory: 224 of its 227 KiB. One less in clusters of eight, whose sums take 4 KiB."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Threads of a block, 16-byte words a thread and row, blocks of a cluster, words that wait in registers, blocks an SM."""

    lanes: int
    words: int
    cluster: int
    held: int
    blocks: int = 1

    @property
    def shared_bytes(self) -> int:
        return 2 * 16 * self.lanes * (self.words - self.held)

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """What the kernel is compiled with for rows of this matrix."""
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "ROW_LANES": str(self.lanes),
            "ROW_WORDS": str(self.words),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_BLOCKS": str(self.blocks),
            "ROW_ALIGNED": "true" if x_MN.shape[1] * x_MN.element_size() % 16 == 0 else "false",
            "COLUMNS_HELD": str(self.held),
        }


def columns_shape(row_words: int) -> Columns | None:
    """How clusters of one block an SM take rows of that many words; None for those of up to 64 KiB or beyond 1 MiB.

    >>> columns_shape(4096), columns_shape(65537)
    (None, None)
    >>> columns_shape(16384), columns_shape(6283)
    (Columns(lanes=1024, words=8, cluster=2, held=1, blocks=1), Columns(lanes=928, words=7, cluster=1, held=0, blocks=1))
    """
    cluster = 1
    while cluster < CLUSTER and cluster * MOST_WORDS * LONGEST_BLOCK < row_words:
        cluster *= 2
    words = -(-row_words // (cluster * LONGEST_BLOCK))
    if row_words <= LONGEST_ROW_WORDS or words > MOST_WORDS:
        return None
    lanes = -(-row_words // (32 * words * cluster)) * 32
    return Columns(lanes, words, cluster, max(0, words - MOST_FAR + cluster // CLUSTER))


def bind_columns(x_MN: Tensor) -> Launch:
    """Rows of a contiguous matrix (M, N) by clusters that stay, or as `bind_cluster` where rows are few, short or too long.

    Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_words(x_MN=x_MN)
    m, n = x_MN.shape
    shape = columns_shape(words_of(n, x_MN.element_size()))
    if shape is None or m * shape.cluster <= multiprocessors(x_MN.device):
        return bind_cluster(x_MN)
    out_MN = torch.empty_like(x_MN)
    threads, cluster, shared_bytes = shape.lanes, shape.cluster, shape.shared_bytes
    kernel = nvrtc.kernel(SOURCE, "softmax_columns", shape.defines(x_MN), shared_bytes=shared_bytes, cluster=cluster)
    fit = nvrtc.resident(kernel, threads, cluster=cluster, shared_bytes=shared_bytes)
    blocks = min(fit, cluster * m)
    claims = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), out_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), claims.data_ptr())

    def launch() -> Tensor:
        assert claims.numel() == 2  # kept alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return out_MN

    return launch
