"""CUDA C++ kernel of `column_sum` for some rows of middling width, bound to matrices."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "strips.cu"
MOST_LANES, MOST_GROUPS, MOST_ROWS = 32, 32, 8
"""Vectors of a strip, threads that share a column, and rows that a thread has in flight."""
ROWS_OF_THREAD = 4
"""Rows in flight for which a block has another thread below, up to `MOST_GROUPS`: 64 bytes."""
SEGMENT_BYTES = 64
"""The least width of a strip where a row has as much: two sectors of 32 bytes."""
VECTOR_BYTES = 8
"""Narrower vectors are loads of a known size, of more rows at once, as long as a thread has up to `NARROW_ROWS` rows: beyond, an
SM has too few bytes in flight, and the kernel for shifted rows reads 16 bytes. H200: 42 rows of 5170 bf16 take 1.76 us so,
2.84 by shifted rows and 1.83 in torch.compile, which reads an element at a time, 318 of 26,686 6.26, 8.82 and 7.55."""
NARROW_ROWS, NARROW_BYTES = 64, 64
"""Rows of a thread with narrower vectors, and bytes of them that it has in flight."""
WIDE_STRIPS = 4
"""Strips of narrower vectors of an SM, from which on each thread has as many rows as it may: not all are resident at once, and
2048 threads with 4 rows each of 4 bytes have 32 KiB in flight. An estimate."""
LANE_BYTES = 4
"""Of a lane, so that `MOST_LANES` read 128 bytes of a row: of narrower vectors, there are more."""
WARP, MOST_CLUSTER = 32, 8
MOST_ALONE_BYTES = 16 * 1024
"""Of a block that needs no help of others in a cluster, whose barrier takes longer than such a strip: an estimate."""
MOST_BYTES = 2**20
"""Of a block. Where it had more, there are few strips for a long matrix, and memory is busier with parts of the rows."""
LEAST_MULTIPROCESSORS = 16
"""Every GPU with clusters has as many, and a processor, for which kernels are compiled without a GPU, is one."""
MOST_TALL, MOST_WIDE = 2**31 - 1 - MOST_ROWS * MOST_CLUSTER * MOST_GROUPS, 2**31 - 1 - MOST_LANES * VEC16_BYTES
"""Rows and columns, which are counted in 32 bits, also those after the last one that a thread tests."""


@dataclass(frozen=True, slots=True)
class ColumnStrips:
    """Columns of a vector, vectors side by side in a strip, threads below each other in a block, rows of a thread in flight,
    blocks of a cluster, whether a thread has no more rows, and strips."""

    each: int
    lanes: int
    groups: int
    rows: int
    cluster: int
    one_pass: bool
    strips: int

    @property
    def threads(self) -> int:
        """Of a block."""
        return self.lanes * self.groups

    def defines(self, m: int, n: int, itemsize_bytes: int) -> dict[str, str]:
        """What the kernel is compiled with for m rows of n columns, which are constants of narrow vectors."""
        shape = {"EACH": self.each, "LANES": self.lanes, "GROUPS": self.groups, "ROWS": self.rows}
        shape |= {"CLUSTER": self.cluster, "ONE_PASS": int(self.one_pass)}
        is_narrow = self.each * itemsize_bytes < VECTOR_BYTES
        known = {"KNOWN_M": m if is_narrow else 0, "KNOWN_N": n if is_narrow else 0}
        return {name: str(value) for name, value in (shape | known).items()}


def column_strips(
    m: int, n: int, itemsize_bytes: int, shift: int, count: int, *, most_alone_bytes: int = MOST_ALONE_BYTES
) -> ColumnStrips | None:
    """Strips for m rows of n columns on a GPU of `count` SMs; None where the widest vectors that each row consists of have less
    than 8 bytes and a thread would have more than 64 rows, where a block would have more than 1 MiB, and for sizes of more than
    32 bits.

    `shift`: elements by which the matrix starts behind a multiple of 16 bytes. Each SM has as many strips as every other, or
    nearly so; where there are at most half as many strips as SMs, the blocks of a cluster share the rows of each, as long as a
    block has more than `most_alone_bytes`.

    >>> column_strips(92, 10484, 4, 0, 132)
    ColumnStrips(each=4, lanes=20, groups=23, rows=4, cluster=1, one_pass=True, strips=132)
    >>> column_strips(512, 1024, 2, 0, 132)
    ColumnStrips(each=8, lanes=4, groups=32, rows=8, cluster=2, one_pass=True, strips=32)
    >>> column_strips(300, 2**17, 2, 0, 132)
    ColumnStrips(each=8, lanes=32, groups=8, rows=8, cluster=1, one_pass=False, strips=512)
    >>> column_strips(42, 5170, 2, 0, 132)
    ColumnStrips(each=2, lanes=20, groups=11, rows=4, cluster=1, one_pass=True, strips=130)
    >>> column_strips(318, 26686, 2, 0, 132)
    ColumnStrips(each=2, lanes=26, groups=9, rows=12, cluster=1, one_pass=False, strips=514)
    >>> column_strips(28, 240193, 4, 0, 132)
    ColumnStrips(each=1, lanes=32, groups=2, rows=14, cluster=1, one_pass=True, strips=7507)
    >>> column_strips(92, 10485, 4, 0, 132), column_strips(2**26, 16, 2, 0, 132), column_strips(1000, 26685, 2, 0, 132)
    (ColumnStrips(each=1, lanes=27, groups=9, rows=11, cluster=1, one_pass=True, strips=389), None, None)
    """
    each = math.gcd(VEC16_BYTES // itemsize_bytes, n, shift)
    if m > MOST_TALL or n > MOST_WIDE:
        return None
    vectors, vector_bytes = n // each, each * itemsize_bytes
    is_narrow = vector_bytes < VECTOR_BYTES
    most_lanes = MOST_LANES * max(1, LANE_BYTES // vector_bytes)
    most_rows = NARROW_BYTES // vector_bytes if is_narrow else MOST_ROWS
    strips_of_multiprocessor = -(-vectors // (most_lanes * count))
    narrowest = min(vectors, SEGMENT_BYTES // vector_bytes)
    lanes = max(narrowest, -(-vectors // (strips_of_multiprocessor * count)))
    strips = -(-vectors // lanes)
    cluster = 1
    row_of_strip_bytes = lanes * each * itemsize_bytes
    while (
        2 * cluster <= min(MOST_CLUSTER, count // strips, m // ROWS_OF_THREAD)
        and -(-m // cluster) * row_of_strip_bytes > most_alone_bytes
    ):
        cluster *= 2
    # So that all strips of an SM are resident, a block of several has fewer threads.
    most_threads = max(256, 768 // strips_of_multiprocessor)
    of_block = -(-m // cluster)
    if of_block * row_of_strip_bytes > MOST_BYTES:
        return None
    rows_of_thread = most_rows if is_narrow and strips_of_multiprocessor >= WIDE_STRIPS else ROWS_OF_THREAD
    groups = min(MOST_GROUPS, max(1, most_threads // lanes), -(-of_block // rows_of_thread))
    if cluster > 1:  # whole warps, because all threads of a warp arrive at a barrier of a cluster together
        whole = WARP // math.gcd(WARP, lanes)
        groups = -(-groups // whole) * whole
    rows = -(-of_block // groups)
    if is_narrow:
        if rows > NARROW_ROWS:
            return None
        # As many in each pass.
        return ColumnStrips(each, lanes, groups, -(-rows // -(-rows // most_rows)), cluster, rows <= most_rows, strips)
    return ColumnStrips(each, lanes, groups, min(rows, most_rows), cluster, rows <= most_rows, strips)


def bind_column_strips(x_MN: Tensor, tile: ColumnStrips) -> Launch:
    """One launch, in which a block or a cluster has all rows of a strip of columns."""
    import torch

    m, n = x_MN.shape
    out_N = torch.empty(n, dtype=x_MN.dtype, device=x_MN.device)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines(m, n, x_MN.element_size())}
    kernel = nvrtc.kernel(SOURCE, "column_strips", defines, cluster=tile.cluster)
    blocks, sizes = tile.strips * tile.cluster, (ctypes.c_int(m), ctypes.c_int(n))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        nvrtc.launch(kernel, blocks, tile.threads, x_MN.data_ptr(), out_N.data_ptr(), *sizes, cluster=tile.cluster)
        return out_N

    return launch
