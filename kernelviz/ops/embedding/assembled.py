"""CUDA C++ kernels that copy many rows that are not whole 16-byte vectors, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.embedding.cuda import VECTOR_TYPES
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = Path(__file__).parent
SOURCE, SHIFTED = FOLDER / "assembled.cu", FOLDER / "shifted.cu"
THREADS = 128
LEAST_ROW = 3
"""Units of a row; of fewer, a vector of the output has units of so many rows that reading their ids takes longest."""
SHIFTED_UNIT_BYTES, SHIFTED_ROW = 2, 16
"""Of rows that are read by 16-byte vectors wherever they begin, and the least units of such a row. Wider units are read one by
one: up to four loads."""
SHORT_ROW, TABLE_BYTES = 7, 2**16
"""Units of rows that are read so, too, from a table of more bytes than the L1 keeps beside what passes through it. Loads of
single units look up as many lines as there are rows among 32 vectors, eight times. H200: 3.98 million rows of 15 fp16 out of
6.6 MB take 84.3 us by single units, 66.8 by vectors and 71.7 in torch.compile. Both limits are estimates."""
FEWEST_UNITS = 1024
"""Of the output for each SM, below which a thread for each unit has all of them in flight: an estimate. H200, us so and in
torch.compile: 9,114 rows of 21 fp32 (1,450 units an SM) 1.88 and 1.86, 15 of 20,305 (2,307) 2.11 and 2.19."""


@dataclass(frozen=True, slots=True)
class AssembledRows:
    """Bytes of a unit, units of a row, rows of the table and of the output."""

    unit_bytes: int
    row: int
    v: int
    rows: int
    shifted: bool
    """Whether rows are read by 16-byte vectors."""

    @property
    def kernel(self) -> tuple[Path, str]:
        """Its file and name."""
        return (SHIFTED, "gather_shifted") if self.shifted else (SOURCE, "gather_assembled")

    @property
    def units_of_tail(self) -> int:
        """Units of the table behind its last whole vector."""
        return self.v * self.row % (VEC16_BYTES // self.unit_bytes)

    @property
    def total(self) -> int:
        """Units of the output."""
        return self.row * self.rows

    @property
    def blocks(self) -> int:
        """Blocks of THREADS with a 16-byte vector each."""
        return -(-self.total * self.unit_bytes // (VEC16_BYTES * THREADS))

    @property
    def is_small(self) -> bool:
        """Whether 32 bits count the units of all blocks."""
        return self.blocks * THREADS * VEC16_BYTES // self.unit_bytes < 2**32

    @property
    def arguments(self) -> tuple[Any, ...]:
        """Units of the output, its last row, and for rows read by vectors the units of the table in whole ones."""
        index = ctypes.c_uint if self.is_small else ctypes.c_ulonglong
        whole = (ctypes.c_longlong(self.v * self.row - self.units_of_tail),) if self.shifted else ()
        return index(self.total), index(self.rows - 1), *whole

    @property
    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with."""
        index = "unsigned" if self.is_small else "unsigned long long"
        sizes = {"ROW": str(self.row), "ONE_ROW": str(int(self.v == 1)), "INDEX": index}
        return sizes | ({"TAIL": str(self.units_of_tail)} if self.shifted else {"UNIT": VECTOR_TYPES[self.unit_bytes]})


def assembled_rows(
    v: int, t: int, units: int, unit_bytes: int, count: int, *, aligned: bool = True
) -> AssembledRows | None:
    """Vectors of the output for t rows of so many units out of v, on a GPU of `count` SMs; None for rows of whole vectors or of
    one unit, and for few units.

    `aligned`: whether the table starts on a multiple of 16 bytes, as vectors of it need.

    >>> assembled_rows(11, 4184565, 15, 2, 132)
    AssembledRows(unit_bytes=2, row=15, v=11, rows=4184565, shifted=False)
    >>> [assembled_rows(11, 2**20, 35, 2, 132, aligned=aligned).shifted for aligned in (True, False)]
    [True, False]
    >>> [assembled_rows(v, 2**20, 15, 2, 132).shifted for v in (2000, 3000)]
    [False, True]
    >>> assembled_rows(11, 4184565, 15, 2, 132).blocks, assembled_rows(1, 2**27, 33, 2, 132).is_small
    (61298, False)
    >>> [assembled_rows(11, t, units, size, 132) for t, units, size in ((2**20, 15, 16), (2**20, 1, 2), (100, 15, 2))]
    [None, None, None]
    """
    if unit_bytes >= VEC16_BYTES or units < LEAST_ROW or t * units < FEWEST_UNITS * count:
        return None
    least = SHIFTED_ROW if v * units * unit_bytes <= TABLE_BYTES else SHORT_ROW
    return AssembledRows(unit_bytes, units, v, t, aligned and unit_bytes == SHIFTED_UNIT_BYTES and units >= least)


def bind_assembled(x_VD: Tensor, ids_T: Tensor, rows: AssembledRows) -> Launch:
    """A 16-byte vector of the output for each thread. x and ids are contiguous."""
    import torch

    out_TD = torch.empty((rows.rows, x_VD.shape[1]), dtype=x_VD.dtype, device=x_VD.device)
    kernel = nvrtc.kernel(*rows.kernel, rows.defines)
    pointers, sizes, blocks = (x_VD.data_ptr(), ids_T.data_ptr(), out_TD.data_ptr()), rows.arguments, rows.blocks

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *pointers, *sizes)
        return out_TD

    return launch
