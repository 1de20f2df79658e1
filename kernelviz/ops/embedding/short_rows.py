"""CUDA C++ kernel that copies the rows that ids name, compiled for the length of a row, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.embedding.assembled import assembled_rows, bind_assembled
from kernelviz.ops.embedding.cuda import VECTOR_TYPES, vector_bytes
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "short_rows.cu"
THREADS, UNROLL = 256, 2
"""With two vectors a thread, registers allow 2048 threads an SM. H200, us with four vectors a thread and a division by a number
that is not compiled, and in torch.compile, which has two: 4,096 rows of 16 KiB 17.8 and 16.9, 352 rows of 2 MB 254 and 250; with
one, 14,680 rows of 51 KB out of 16 216 and 175."""
ONE_VECTOR, ONE_VEC16 = 2 * THREADS * UNROLL, 8 * 2048
"""An SM, below which a thread has one vector, and one of 16 bytes. H200: 5,796 rows of 159 16-byte vectors take 8.90 us with four
a thread and divisions, 8.38 with one by a block a row; 426,322 rows of two take 13.86 us with two a thread, and 13.44 in
torch.compile, which has one; 32 rows of 512 KiB take 8.80 with one and 8.75 in torch.compile."""
MANY_VEC16 = 2**22
"""16-byte vectors of a table of one row, or of no fewer rows than there are ids, from which a thread has one, too: it waits for
no id, or memory is read as fast as it is written, so that few bytes of a multiprocessor are enough. H200: one row of 185 MB takes
84.5 us so and 85.2 in torch.compile; a copy of 206 MB takes 101.6 us with four a thread and 93.2 with one, of 34 MB 15.4 and
15.7; 4 rows of 33.6 MB take 63.1 with two, and 60.9 in torch.compile, which has one. The limit is an estimate."""
PAIRS, MANY_PAIRS = 2, 1024
"""Pairs of a thread where rows are one vector of less than 16 bytes, and threads an SM that must have as many: of fewer rows, two
a thread are one wave. H200: 35.6 million rows of 4 bytes take 100.6 us with two ids a thread and 95.8 in torch.compile, 44.3
million 125.6 and 119.6, and 716 thousand of 8 bytes, which are 1.3 waves, 4.32 and 3.89."""
WARP, SMALL_THREADS, MANY_VECTORS = 32, 128, 2**17
"""Of a block whose threads have one vector each: few for few vectors, so that they reach many SMs."""
MOST_COUNTED = 2**32
"""Vectors that 32 bits count, also those after the last one that a thread tests."""


@dataclass(frozen=True, slots=True)
class ShortRows:
    """Vectors of a row, of a thread, and of all rows of the output."""

    vectors: int
    unroll: int
    total: int
    one_row: bool = False
    """Whether the table has one row, which each id names."""
    wide: bool = False
    """Whether 32 bits are too few to count all vectors."""
    pairs: bool = False
    """Whether a row is one vector, of which a thread has two pairs."""

    @property
    def kernel(self) -> str:
        """The kernel's name."""
        if self.pairs:
            return "gather_pairs"
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
        return -(-self.total // (self.threads * (2 * PAIRS if self.pairs else self.unroll)))

    @property
    def argument(self) -> Any:
        """The last argument of the kernel: the last vector, or how many there are."""
        number = self.total - 1 if self.unroll == 1 else self.total
        return ctypes.c_ulonglong(number) if self.wide else ctypes.c_uint(number)

    def defines(self, width_bytes: int) -> dict[str, str]:
        """What the kernel is compiled with, for vectors of so many bytes."""
        numbers = {
            "VECTORS": self.vectors,
            "UNROLL": self.unroll,
            "BLOCK_THREADS": self.threads,
            "ONE_ROW": int(self.one_row),
            "WIDE": int(self.wide),
        }
        return {"VECTOR": VECTOR_TYPES[width_bytes]} | {name: str(number) for name, number in numbers.items()}


def short_rows(v: int, t: int, vectors: int, count: int, width_bytes: int, *, ids_aligned: bool = True) -> ShortRows:
    """Vectors of a thread for t rows of so many vectors out of v, on a GPU of `count` SMs.

    `ids_aligned`: whether the ids start on a multiple of 16 bytes, as pairs of them need.

    One vector a thread where there would be fewer than two blocks an SM; of 16-byte vectors, where all run in a few waves, and of
    very many of a table of one row or of no fewer rows than ids.

    >>> short_rows(4680, 2585616, 3, 132, 16), short_rows(39350, 1366, 3, 132, 16)
    (ShortRows(vectors=3, unroll=2, total=7756848, one_row=False, wide=False, pairs=False), \
ShortRows(vectors=3, unroll=1, total=4098, one_row=False, wide=False, pairs=False))
    >>> [(tile.kernel, tile.blocks) for tile in (short_rows(7, t, 1, 132, 4) for t in (2**19, 35_614_161))]
    [('gather_short_rows', 1024), ('gather_pairs', 34780)]
    >>> short_rows(2**32, 100, 2, 132, 8).wide, short_rows(131072, 8192, 511, 132, 16).unroll
    (True, 2)
    >>> [short_rows(v, t, 2**23, 132, 16).unroll for v, t in ((1, 2), (2, 2), (2, 3))]
    [1, 1, 2]
    """
    total, is_vec16 = t * vectors, width_bytes == VEC16_BYTES
    few = total < count * (ONE_VEC16 if is_vec16 else ONE_VECTOR)
    one = few or ((v == 1 or t <= v) and is_vec16 and total >= MANY_VEC16)
    wide = max(v * vectors, total + THREADS * 2 * PAIRS) > MOST_COUNTED
    pairs = vectors == 1 and not is_vec16 and v > 1 and ids_aligned and total >= 2 * PAIRS * MANY_PAIRS * count
    return ShortRows(vectors, 1 if one else UNROLL, total, v == 1, wide, pairs)


def bind_short_rows(x_VD: Tensor, ids_T: Tensor) -> Launch:
    """Rows by a kernel for their length. Raises BadField for tensors that are not contiguous."""
    import torch

    require_contiguous(x_VD=x_VD, ids_T=ids_T)
    width = vector_bytes(x_VD)
    (v, d), t = x_VD.shape, ids_T.shape[0]
    vectors, count = d * x_VD.element_size() // width, multiprocessors(x_VD.device)
    assembled = assembled_rows(v, t, vectors, width, count, aligned=aligned(x_VD))
    if assembled is not None:
        return bind_assembled(x_VD, ids_T, assembled)
    tile = short_rows(v, t, vectors, count, width, ids_aligned=aligned(ids_T))
    out_TD = torch.empty((t, d), dtype=x_VD.dtype, device=x_VD.device)
    kernel = nvrtc.kernel(SOURCE, tile.kernel, tile.defines(width))
    pointers, argument = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr()), tile.argument

    def launch() -> Tensor:
        nvrtc.launch(kernel, tile.blocks, tile.threads, *pointers, argument)
        return out_TD

    return launch
