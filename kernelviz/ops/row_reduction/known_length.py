"""CUDA C++ kernel of `row_sum` of few short rows, compiled for their length, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.row_reduction.cuda import bind_adaptive

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "known_length.cu"
THREADS = 128
MOST_ELEMENTS, LONGEST = 2**16, 256
"""Of a matrix, and of a row: the loads of eight elements for each of 32 threads."""
SERIAL_ROWS, SERIAL_LENGTH, EACH = 32, 16, 4


def lanes(m: int, n: int) -> int | None:
    """Threads that share each of m rows of n elements, a power of two; None for a larger matrix or a longer row.

    One thread has up to 16 elements of a few rows, which saves the shuffles; else a thread has four, or eight of a long row
    (H200, fp32: 4 rows of 16 take 1.12 us with one thread a row and 1.15 with four, 300 rows 1.62 and 1.34).

    >>> lanes(4, 16), lanes(300, 16), lanes(40, 100), lanes(40, 256), lanes(300, 256), lanes(1, 257)
    (1, 4, 32, 32, None, None)
    """
    if n > LONGEST or m * n > MOST_ELEMENTS:
        return None
    if m <= SERIAL_ROWS and n <= SERIAL_LENGTH:
        return 1
    return min(32, 1 << (-(-n // EACH) - 1).bit_length())


def bind_known_length(x_MN: Tensor) -> Launch:
    """Few short rows of a contiguous matrix (M, N); others as `bind_adaptive`. Raises BadField for one that is not contiguous."""
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    shared_by = lanes(m, n)
    if shared_by is None:
        return bind_adaptive(x_MN, argmax=False)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "LENGTH": str(n), "LANES": str(shared_by)}
    kernel = nvrtc.kernel(SOURCE, "row_sum_known_length", defines)
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)
    blocks, rows = -(-m * shared_by // THREADS), ctypes.c_int(m)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, x_MN.data_ptr(), out_M.data_ptr(), rows)
        return out_M

    return launch
