"""CUDA C++ kernel that copies the short rows that ids name, compiled for the length of a row, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.embedding.assembled import assembled_rows, bind_assembled
from kernelviz.ops.embedding.cuda import VECTOR_TYPES, bind_flat, vector_bytes
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "short_rows.cu"
THREADS, UNROLL = 256, 2
"""With two vectors a thread, registers allow 2048 threads an SM; with four, the compiler waits for two ids before it loads the
others."""
MOST_VECTORS = 64
"""Of a row of 16-byte vectors, of which a thread has several. Longer ones have few divisions for their bytes; there is a kernel
for any length. H200: where a thread has one vector, 128 rows of 64 KiB took 3.85 us by that kernel and 3.36 in Triton's
tiles."""
ONE_VECTOR, ONE_VEC16 = 2 * THREADS * UNROLL, 8 * 2048
"""An SM, below which a thread has one vector, and one of 16 bytes. H200: 5,796 rows of 159 16-byte vectors take 8.90 us with four
a thread and divisions, 8.38 with one by a block a row; 426,322 rows of two take 13.86 us with two a thread, and 13.44 in
torch.compile, which has one. The limit of 16-byte vectors is an estimate."""
MANY_VEC16 = 2**23
"""16-byte vectors of long rows, from which a thread has one, too: an estimate. H200, 2 rows of 134 MB: 127.5 us with four a
thread and 124.5 in torch.compile; a copy of 206 MB takes 101.6 us with four a thread and 93.2 with one, of 34 MB 15.4 and
15.7."""
WARP, SMALL_THREADS, MANY_VECTORS = 32, 128, 2**17
"""Of a block whose threads have one vector each: few for few vectors, so that they reach many SMs."""
MOST_COUNTED = 2**32
"""Vectors are counted in 32 bits, also those after the last one that a thread tests."""


@dataclass(frozen=True, slots=True)
class ShortRows:
    """Vectors of a row, of a thread, and of all rows of the output."""

    vectors: int
    unroll: int
    total: int
    one_row: bool = False
    """Whether the table has one row, which each id names."""

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        return "gather_one_vector" if self.unroll == 1 else "gather_short_rows"

    @property
    def threads(self) -> int:
        """Threads of a block.

        >>> [ShortRows(3, 1, total).threads for total in (3, 3000, 300_000)]
        [32, 128, 256]
        """
        if self.unroll > 1 or self.total > MANY_VECTORS:
            return THREADS
        return WARP if self.total <= WARP else SMALL_THREADS

    @property
    def blocks(self) -> int:
        """Blocks of that many threads."""
        return -(-self.total // (self.threads * self.unroll))

    @property
    def argument(self) -> int:
        """The last argument of the kernel: the last vector, or how many there are."""
        return self.total - 1 if self.unroll == 1 else self.total

    def defines(self, width_bytes: int) -> dict[str, str]:
        """What the kernel is compiled with, for vectors of so many bytes."""
        numbers = {
            "VECTORS": self.vectors,
            "UNROLL": self.unroll,
            "BLOCK_THREADS": self.threads,
            "ONE_ROW": int(self.one_row),
        }
        return {"VECTOR": VECTOR_TYPES[width_bytes]} | {name: str(number) for name, number in numbers.items()}


def short_rows(v: int, t: int, vectors: int, count: int, width_bytes: int) -> ShortRows | None:
    """Vectors of a thread for t rows of so many vectors out of v, on a GPU of `count` SMs; None for long rows of whole 16-byte
    vectors, and for too many vectors.

    One vector a thread where there would be fewer than two blocks an SM; of 16-byte vectors, where all run in a few waves, and of
    very many of long rows.

    >>> short_rows(4680, 2585616, 3, 132, 16), short_rows(39350, 1366, 3, 132, 16)
    (ShortRows(vectors=3, unroll=2, total=7756848, one_row=False), ShortRows(vectors=3, unroll=1, total=4098, one_row=False))
    >>> short_rows(2, 128, 4096, 132, 16)
    ShortRows(vectors=4096, unroll=1, total=524288, one_row=False)
    >>> short_rows(2**32, 100, 2, 132, 8), short_rows(131072, 8192, 512, 132, 16)
    (None, None)
    >>> short_rows(2, 2, 2**23, 132, 16).unroll
    1
    >>> short_rows(1, 100, 65, 132, 8)
    ShortRows(vectors=65, unroll=1, total=6500, one_row=True)
    >>> short_rows(22471, 5796, 159, 132, 16)
    ShortRows(vectors=159, unroll=1, total=921564, one_row=False)
    """
    total, is_vec16 = t * vectors, width_bytes == VEC16_BYTES
    is_long = is_vec16 and vectors > MOST_VECTORS
    few = total < count * (ONE_VEC16 if is_vec16 else ONE_VECTOR)
    unroll = 1 if few or (is_long and total >= MANY_VEC16) else UNROLL
    if (is_long and unroll > 1) or max(v * vectors, total + THREADS * UNROLL) > MOST_COUNTED:
        return None
    return ShortRows(vectors, unroll, total, v == 1)


def bind_short_rows(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Rows by a kernel for their length, of which longer ones of whole vectors have none: those as `bind_flat`.

    Raises BadField for tensors that are not contiguous.
    """
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    width = vector_bytes(x_VD)
    (v, d), t = x_VD.shape, ids_T.shape[0]
    vectors, count = d * x_VD.element_size() // width, multiprocessors(x_VD.device)
    assembled = assembled_rows(v, t, vectors, width, count, aligned=aligned(x_VD))
    if assembled is not None:
        return bind_assembled(x_VD, ids_T, assembled)
    tile = short_rows(v, t, vectors, count, width)
    if tile is None:
        return bind_flat(x_VD, ids_T)
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    kernel = nvrtc.kernel(SOURCE, tile.kernel, tile.defines(width))
    pointers = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr())

    def launch() -> Tensor:
        nvrtc.launch(kernel, tile.blocks, tile.threads, *pointers, ctypes.c_uint(tile.argument))
        return out_TD

    return launch
