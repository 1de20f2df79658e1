"""The CUDA C++ kernel of `scatter_add` for few rows of src, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.scatter_add.cuda import bind_segments, vector_bytes

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "few_rows.cu"
MOST_ROWS = 1024
"""Of src: a block has a bit for each in shared memory, and reads all ids."""
MOST_THREADS = 256


def threads_of(vectors: int) -> int:
    """Threads of a block for rows of that many accesses: whole warps.

    >>> threads_of(1), threads_of(33), threads_of(16305)
    (32, 64, 256)
    """
    return min(MOST_THREADS, -(-vectors // 32) * 32)


def bind_few_rows(x_VD: Tensor, src_TD: Tensor, ids_T: Tensor) -> Launch:
    """Up to 1,024 rows of src in one launch without atomics; more as `bind_segments`.

    Raises BadField for tensors that are not contiguous, and for rows of 2^31 accesses or more.
    """
    require_contiguous(x_VD=x_VD, src_TD=src_TD, ids_T=ids_T)
    t, d = src_TD.shape
    if t > MOST_ROWS:
        return bind_segments(x_VD, src_TD, ids_T)
    width = vector_bytes(x_VD, src_TD)
    vectors = d * x_VD.element_size() // width
    threads = threads_of(vectors)
    if vectors > 2**31 - 1 - MOST_THREADS:
        raise BadField("size d", d, "this kernel counts the accesses to a row in 32 bits; give fewer than 2^31")
    pieces = -(-vectors // threads)
    defines = {
        "ELEMENT": nvrtc.element_type(x_VD.dtype),
        "VEC": str(width // x_VD.element_size()),
        "THREADS": str(threads),
    }
    kernel = nvrtc.kernel(SOURCE, "scatter_few_rows", defines)
    pointers = (x_VD.data_ptr(), src_TD.data_ptr(), ids_T.data_ptr())
    sizes = (ctypes.c_int(t), ctypes.c_int(vectors), ctypes.c_int(pieces))

    def launch() -> Tensor:
        nvrtc.launch(kernel, t * pieces, threads, *pointers, *sizes)
        return x_VD

    return launch
