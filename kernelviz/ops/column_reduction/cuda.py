"""CUDA C++ kernels of `column_sum`, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
THREADS = 256
BLOCKS_A_MULTIPROCESSOR = 4
SHORTEST_PART_ROWS = 4
"""Rows of a thread below which another block would save less than adding up its sums costs."""
MOST_COLUMNS = 2**31 - 1 - 8 * THREADS
"""Columns are counted in 32 bits, also those after the last one that a thread tests."""


@dataclass(frozen=True, slots=True)
class Strips:
    """How blocks of 256 threads share a matrix: columns of a thread, threads side by side, strips, parts of the rows."""

    each: int
    lanes: int
    strips: int
    parts: int
    part_rows: int

    @property
    def defines(self) -> dict[str, str]:
        """What the kernels are compiled with."""
        return {"EACH": str(self.each), "LANES": str(self.lanes)}


def strips_of(m: int, n: int, each: int, count: int) -> Strips:
    """Strips for m rows of n columns, `each` of them a thread, on a GPU of `count` SMs: about four blocks an SM in all.

    A strip is as wide as a warp, or as the power of 2 that a row needs.

    >>> strips_of(4096, 4096, 8, 132)
    Strips(each=8, lanes=32, strips=16, parts=33, part_rows=125)
    >>> strips_of(2**20, 16, 8, 132)
    Strips(each=8, lanes=2, strips=1, parts=528, part_rows=1986)
    >>> strips_of(3, 2**17, 4, 132)
    Strips(each=4, lanes=32, strips=1024, parts=1, part_rows=3)
    """
    threads_of_row = -(-n // each)
    lanes = min(32, 1 << (threads_of_row - 1).bit_length())
    strips = -(-threads_of_row // lanes)
    shortest_rows = SHORTEST_PART_ROWS * (THREADS // lanes)
    parts = max(1, min(-(-BLOCKS_A_MULTIPROCESSOR * count // strips), m // shortest_rows))
    part_rows = -(-m // parts)
    return Strips(each, lanes, strips, -(-m // part_rows), part_rows)


def bind_per_thread(x_MN: Tensor) -> Launch:
    """A thread a column of a contiguous matrix (M, N). All binds raise BadField for a matrix that is not contiguous."""
    m, n = _shape(x_MN)
    out_N = _sums(x_MN)
    kernel = nvrtc.kernel(SOURCE, "column_per_thread", {"ELEMENT": nvrtc.element_type(x_MN.dtype)})
    arguments = (x_MN.data_ptr(), out_N.data_ptr(), ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, -(-n // 128), 128, *arguments)
        return out_N

    return launch


def bind_atomics(x_MN: Tensor) -> Launch:
    """Several blocks a strip of columns, which add their sums by atomics; then a kernel that converts the sums."""
    import torch

    m, n = _shape(x_MN)
    tile = strips_for(x_MN)
    out_N = _sums(x_MN)
    totals_N = torch.empty(n, dtype=torch.float32, device=x_MN.device)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines}
    add, finish = nvrtc.kernel(SOURCE, "column_atomics", defines), nvrtc.kernel(SOURCE, "column_finish", defines)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(tile.strips), ctypes.c_longlong(tile.part_rows))

    def launch() -> Tensor:
        totals_N.zero_()
        nvrtc.launch(add, tile.strips * tile.parts, THREADS, x_MN.data_ptr(), totals_N.data_ptr(), *sizes)
        nvrtc.launch(finish, -(-n // THREADS), THREADS, totals_N.data_ptr(), out_N.data_ptr(), ctypes.c_int(n))
        return out_N

    return launch


def bind_split(x_MN: Tensor) -> Launch:
    """Several blocks a strip of columns, of which the last adds up their sums."""
    import torch

    m, n = _shape(x_MN)
    tile = strips_for(x_MN)
    out_N = _sums(x_MN)
    sums = torch.empty(tile.parts * n if tile.parts > 1 else 1, dtype=torch.float32, device=x_MN.device)
    arrived = torch.zeros(tile.strips, dtype=torch.int32, device=x_MN.device)
    kernel = nvrtc.kernel(SOURCE, "column_split", {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines})
    sizes = (
        ctypes.c_longlong(m),
        ctypes.c_int(n),
        ctypes.c_int(tile.strips),
        ctypes.c_int(tile.parts),
        ctypes.c_longlong(tile.part_rows),
    )

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, sums, arrived, out_N))
        nvrtc.launch(kernel, tile.strips * tile.parts, THREADS, *pointers, *sizes)
        return out_N

    return launch


def strips_for(x_MN: Tensor) -> Strips:
    """The strips of this matrix: 16-byte vectors where rows are whole ones and start on 16 bytes, else single columns."""
    m, n = x_MN.shape
    width = VEC16_BYTES // x_MN.element_size()
    each = width if n % width == 0 and aligned(x_MN) else 1
    return strips_of(m, n, each, multiprocessors(x_MN.device))


def _shape(x_MN: Tensor) -> tuple[int, int]:
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if n > MOST_COLUMNS:
        raise BadField("size n", n, f"this kernel counts columns in 32 bits; it takes at most {MOST_COLUMNS}")
    return m, n


def _sums(x_MN: Tensor) -> Tensor:
    import torch

    return torch.empty(x_MN.shape[1], dtype=x_MN.dtype, device=x_MN.device)
