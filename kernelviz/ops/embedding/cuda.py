"""CUDA C++ kernels that copy the rows that ids name, bound to tensors."""

from __future__ import annotations

import ctypes
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS, UNROLL = 256, 4
"""A piece is 1024 vectors; 256 where there would be fewer than two pieces a processor."""
VECTOR_TYPES = {2: "unsigned short", 4: "unsigned", 8: "uint2", 16: "uint4"}


def vector_bytes(x_VD: Tensor) -> int:
    """The widest vector, at most 16 bytes, that every row starts on and is a whole number of."""
    return gcd(x_VD.shape[1] * x_VD.element_size(), x_VD.data_ptr(), 16)


def bind_row(x_VD: Tensor, ids_T: Tensor, *, vectors: bool = True) -> Launch:
    """One block a row, in the widest vectors or in single elements; raises BadField for tensors that are not contiguous."""
    width = vector_bytes(x_VD) if vectors else x_VD.element_size()
    a_row = x_VD.shape[1] * x_VD.element_size() // width
    blocks, threads = ids_T.shape[0], min(THREADS, -(-a_row // 32) * 32)
    return _bind("gather_row", x_VD, ids_T, width, blocks=blocks, threads=threads)


def bind_flat(x_VD: Tensor, ids_T: Tensor, *, unroll: int | None = None) -> Launch:
    """1024 vectors a block, of as many rows as that takes; raises BadField for tensors that are not contiguous."""
    width = vector_bytes(x_VD)
    pieces, unroll = _pieces(x_VD, ids_T, width, unroll)
    return _bind("gather_flat", x_VD, ids_T, width, blocks=pieces, threads=THREADS, unroll=unroll)


def _pieces(x_VD: Tensor, ids_T: Tensor, width: int, unroll: int | None) -> tuple[int, int]:
    """Pieces and vectors a thread of each."""
    vectors = ids_T.shape[0] * (x_VD.shape[1] * x_VD.element_size() // width)
    if unroll is None:
        unroll = UNROLL if vectors >= 2 * multiprocessors(x_VD.device) * THREADS * UNROLL else 1
    return -(-vectors // (THREADS * unroll)), unroll


def _bind(
    name: str, x_VD: Tensor, ids_T: Tensor, width: int, *, blocks: int, threads: int, unroll: int = UNROLL
) -> Launch:
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    t, d = ids_T.shape[0], x_VD.shape[1]
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    a_row = d * x_VD.element_size() // width
    # The last piece may reach beyond the last vector.
    index = "unsigned" if t * a_row + THREADS * UNROLL < 2**32 else "unsigned long long"
    kernel = nvrtc.kernel(SOURCE, name, {"VECTOR": VECTOR_TYPES[width], "UNROLL": str(unroll), "INDEX": index})
    vectors = ctypes.c_int(a_row)
    sizes: tuple[Any, ...] = (vectors,) if name == "gather_row" else (ctypes.c_longlong(t), vectors)
    pointers = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *sizes)
        return out_TD

    return launch
