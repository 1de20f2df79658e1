"""CUDA C++ kernel that copies the short rows that ids name, compiled for the length of a row, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.embedding.cuda import VECTOR_TYPES, bind_flat, vector_bytes
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "short_rows.cu"
THREADS, UNROLL = 256, 2
"""With two vectors a thread, registers allow 2048 threads an SM; with four, the compiler waits for two ids before it loads the
others."""
MOST_VECTORS = 64
"""Of a row. Longer ones have few divisions for their bytes, and there is a kernel for any length."""
MOST_COUNTED = 2**32
"""Vectors are counted in 32 bits, also those after the last one that a thread tests."""


@dataclass(frozen=True, slots=True)
class ShortRows:
    """Vectors of a row, of a thread, and of all rows of the output."""

    vectors: int
    unroll: int
    total: int

    @property
    def blocks(self) -> int:
        """Blocks of THREADS."""
        return -(-self.total // (THREADS * self.unroll))

    def defines(self, width_bytes: int) -> dict[str, str]:
        """What the kernel is compiled with, for vectors of so many bytes."""
        return {"VECTOR": VECTOR_TYPES[width_bytes], "VECTORS": str(self.vectors), "UNROLL": str(self.unroll)}


def short_rows(v: int, t: int, vectors: int, count: int) -> ShortRows | None:
    """Vectors of a thread for t rows of so many vectors out of v, on a GPU of `count` SMs; None for long rows and too many.

    One vector a thread where there would be fewer than two blocks an SM.

    >>> short_rows(4680, 2585616, 3, 132), short_rows(39350, 1366, 3, 132)
    (ShortRows(vectors=3, unroll=2, total=7756848), ShortRows(vectors=3, unroll=1, total=4098))
    >>> short_rows(4680, 100, 65, 132), short_rows(2**32, 100, 2, 132)
    (None, None)
    """
    total = t * vectors
    if vectors > MOST_VECTORS or max(v * vectors, total + THREADS * UNROLL) > MOST_COUNTED:
        return None
    return ShortRows(vectors, UNROLL if total >= 2 * count * THREADS * UNROLL else 1, total)


def bind_short_rows(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Short rows by a kernel for their length, others as `bind_flat`; raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    width = vector_bytes(x_VD)
    (v, d), t = x_VD.shape, ids_T.shape[0]
    tile = short_rows(v, t, d * x_VD.element_size() // width, multiprocessors(x_VD.device))
    if tile is None:
        return bind_flat(x_VD, ids_T)
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    kernel = nvrtc.kernel(SOURCE, "gather_short_rows", tile.defines(width))
    pointers = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, tile.blocks, THREADS, *pointers, ctypes.c_uint(tile.total))
        return out_TD

    return launch
