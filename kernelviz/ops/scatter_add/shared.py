"""The CUDA C++ kernel of `scatter_add` with the sums in shared memory, bound to tensors."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned
from kernelviz.ops.scatter_add.cuda import bind_atomics
from kernelviz.ops.scatter_add.finish import bind_finish

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "shared.cu"
THREADS, VECTORS = 1024, 2
MOST_COPIES = 32
"""Of each sum: one for each lane of a warp."""
ADDITIONS_SAVED = 4
"""Elements of src for each sum that a block adds to memory, at least."""


@dataclass(frozen=True, slots=True)
class SharedTable:
    """Numbers of a block for each sum, and blocks."""

    copies: int
    blocks: int

    def shared_bytes(self, entries: int) -> int:
        """Of a block, for that many sums."""
        return 4 * entries * self.copies

    def defines(self, element: str, d: int, width: int, vectors: int = VECTORS) -> dict[str, str]:
        """Macros for rows of d elements, `width` of which are a 16-byte vector."""
        row = d if d < width else 0
        return {"ELEMENT": element, "ROW": str(row), "COPIES": str(self.copies), "VECTORS": str(vectors)}


def shared_table(v: int, t: int, d: int, width: int, count: int, most_bytes: int) -> SharedTable | None:
    """The table of v rows for t rows that are added, on a GPU of `count` SMs with so many bytes for a block; None where it does
    not fit or would save nothing.

    >>> shared_table(512, 2**25, 2, 8, 132, 232448), shared_table(8, 1000, 2, 8, 132, 232448)
    (SharedTable(copies=32, blocks=132), SharedTable(copies=32, blocks=1))
    >>> shared_table(8192, 2**20, 2, 8, 132, 232448), shared_table(8192, 2**15, 2, 8, 132, 232448)
    (SharedTable(copies=2, blocks=32), SharedTable(copies=2, blocks=1))
    >>> shared_table(2**17, 2**25, 2, 8, 132, 232448), shared_table(512, 512, 2, 8, 132, 232448)
    (None, None)
    """
    entries = v * d
    copies = min(MOST_COPIES, most_bytes // (4 * entries))
    blocks = min(count, -(-t * d // (width * THREADS)), t // (ADDITIONS_SAVED * v))
    return SharedTable(1 << (copies.bit_length() - 1), blocks) if copies and blocks else None


def bind_shared(
    x_VD: Tensor, src_TD: Tensor, ids_T: Tensor, *, copies: int | None = None, vectors: int = VECTORS
) -> Launch:
    """Sums in shared memory where they fit and src starts on 16 bytes; else one fp32 addition an element in memory.

    `copies`: at most so many numbers for each sum. Raises BadField for tensors that are not contiguous.
    """
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    (v, d), t, width = x_VD.shape, ids_T.shape[0], VEC16_BYTES // x_VD.element_size()
    count, most_bytes = limits(x_VD.device)
    table = shared_table(v, t, d, width, count, min(most_bytes, 4 * v * d * (copies or MOST_COPIES)))
    if table is None or not aligned(src_TD):
        return bind_atomics(x_VD, src_TD, ids_T)
    entries = v * d
    shared_bytes = table.shared_bytes(entries)
    defines = table.defines(nvrtc.element_type(x_VD.dtype), d, width, vectors)
    kernel = nvrtc.kernel(SOURCE, "scatter_shared", defines, shared_bytes=shared_bytes)
    sum_VD, finish = bind_finish(x_VD) if x_VD.element_size() < 4 else (x_VD, None)
    pointers = (sum_VD.data_ptr(), src_TD.data_ptr(), ids_T.data_ptr())
    sizes = (ctypes.c_longlong(t), ctypes.c_int(d), ctypes.c_int(entries))

    def launch() -> Tensor:
        nvrtc.launch(kernel, table.blocks, THREADS, *pointers, *sizes, shared_bytes=shared_bytes)
        if finish is not None:
            finish()
        return x_VD

    return launch
