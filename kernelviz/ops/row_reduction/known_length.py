"""CUDA C++ kernels of `row_sum` and `argmax` of short rows, compiled for their length, bound to tensors."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES, aligned
from kernelviz.ops.row_reduction.cuda import bind_adaptive, bind_argmax_vec16

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "known_length.cu"
ARGMAX_SOURCE = Path(__file__).parent / "argmax_known_length.cu"
TINY_ROWS_SOURCE = Path(__file__).parent / "tiny_rows.cu"
WARP, THREADS = 32, 128
MOST_ROWS = 2**31 - 1 - 4 * THREADS
"""Rows are counted in 32 bits, also those after the last one that a thread tests."""
MOST_ELEMENTS, LONGEST = 2**16, 256
"""Of a matrix, and of a row: the loads of eight elements for each of 32 threads."""
SERIAL_ROWS, SERIAL_LENGTH, EACH = 32, 16, 4


LONGEST_OF_MANY = 8
"""Elements of a row of which a thread has one or two in `argmax` of many rows."""
ROWS_IN_FLIGHT = 4
"""Of a thread where rows are many: 64 bytes."""
MOST_VECTORS = 32
"""16-byte vectors of a row, one for each thread of a warp."""


def lanes(m: int, n: int) -> int | None:
    """Threads that share each of m rows of n elements, a power of two; None for a larger matrix or a longer row.

    One thread has up to 16 elements of a few rows, which saves the shuffles (`few_rows` has two or four threads for rows of so
    many 16-byte vectors: H200, 4 rows of 16 fp32 take 1.15 us so, with one thread a row 1.11 to 1.19 on other hosts). Else a
    thread has four, or eight of a long row (H200, fp32: 300 rows of 16 take 1.62 us with one thread a row and 1.34 with four).

    >>> lanes(4, 16), lanes(300, 3), lanes(300, 16), lanes(40, 100), lanes(40, 256), lanes(300, 256), lanes(1, 257)
    (1, 1, 4, 32, 32, None, None)
    """
    if n > LONGEST or m * n > MOST_ELEMENTS:
        return None
    if m <= SERIAL_ROWS and n <= SERIAL_LENGTH:
        return 1
    return min(32, 1 << (-(-n // EACH) - 1).bit_length())


def serial_unit(n: int, itemsize_bytes: int, address: int) -> int:
    """Elements of a load of a thread that has a row of n elements, of a matrix at this address.

    >>> serial_unit(16, 4, 256), serial_unit(6, 2, 256), serial_unit(16, 2, 260)
    (4, 2, 2)
    """
    return math.gcd(VEC16_BYTES, n * itemsize_bytes, address) // itemsize_bytes


def vector_lanes(n: int, itemsize_bytes: int) -> int | None:
    """Threads that share a row of n elements where each has one 16-byte vector; None for a row of more than 512 bytes, or of no
    whole vectors.

    >>> vector_lanes(32, 4), vector_lanes(24, 2), vector_lanes(100, 2), vector_lanes(512, 2)
    (8, 4, None, None)
    """
    vectors, after = divmod(n * itemsize_bytes, VEC16_BYTES)
    return None if after or vectors > MOST_VECTORS else 1 << (vectors - 1).bit_length()


def is_part_of_vector(n: int, itemsize_bytes: int) -> bool:
    """Whether a 16-byte vector has several whole rows of n elements.

    >>> [is_part_of_vector(n, 2) for n in (1, 2, 3, 4, 8)]
    [True, True, False, True, False]
    """
    return n * itemsize_bytes < VEC16_BYTES and VEC16_BYTES % (n * itemsize_bytes) == 0


def bind_known_length(x_MN: Tensor) -> Launch:
    """Few short rows of a contiguous matrix (M, N), or many that are whole 16-byte vectors or equal parts of one; others as
    `bind_adaptive`.

    Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    # The kernel's last argument: index of the last row, or number of rows.
    name, shared_by, rows_of_thread, rows_parameter = "row_sum_known_length", lanes(m, n), 1, m - 1
    if shared_by == 1 and m <= SERIAL_ROWS:
        return _bind_few_rows(x_MN)
    if shared_by is None and aligned(x_MN) and is_part_of_vector(n, x_MN.element_size()):
        return _bind_tiny_rows(x_MN)
    if shared_by is None and aligned(x_MN) and m <= MOST_ROWS:
        name, shared_by = "row_sum_known_vectors", vector_lanes(n, x_MN.element_size())
        rows_of_thread, rows_parameter = ROWS_IN_FLIGHT, m
    if shared_by is None:
        return bind_adaptive(x_MN, argmax=False)
    shape = {"LENGTH": n, "LANES": shared_by, "ROWS": rows_of_thread}
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | {macro: str(value) for macro, value in shape.items()}
    kernel = nvrtc.kernel(SOURCE, name, defines)
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)
    blocks = -(-m * shared_by // (THREADS * rows_of_thread))
    rows = ctypes.c_int(rows_parameter)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, x_MN.data_ptr(), out_M.data_ptr(), rows)
        return out_M

    return launch


@dataclass(frozen=True, slots=True)
class FewRows:
    """A launch of one block for few rows of few elements: kernel, threads, and what it is compiled with but for ELEMENT."""

    name: str
    threads: int
    defines: dict[str, str]


def few_rows(m: int, n: int, itemsize_bytes: int, address: int) -> FewRows:
    """For a matrix (m, n) at this address, of which a thread has a row, or one of its two or four 16-byte vectors.

    >>> few_rows(4, 16, 4, 256).threads, few_rows(4, 16, 4, 260).threads, few_rows(12, 16, 4, 256).threads
    (32, 4, 64)
    """
    unit = serial_unit(n, itemsize_bytes, address)
    parts = n // unit
    if unit * itemsize_bytes == VEC16_BYTES and parts in (2, 4):
        shape = {"LENGTH": str(n), "LANES": str(parts), "VECTORS_OF_ALL": str(m * parts)}
        return FewRows("row_sum_known_few_vectors", -(-m * parts // WARP) * WARP, shape)
    return FewRows("row_sum_known_serial", m, {"LENGTH": str(n), "LANES": "1", "UNIT": str(unit)})


def _bind_few_rows(x_MN: Tensor) -> Launch:
    import torch

    m, n = x_MN.shape
    few = few_rows(m, n, x_MN.element_size(), x_MN.data_ptr())
    kernel = nvrtc.kernel(SOURCE, few.name, {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | few.defines)
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)

    def launch() -> Tensor:
        nvrtc.launch(kernel, 1, few.threads, x_MN.data_ptr(), out_M.data_ptr())
        return out_M

    return launch


def argmax_defines(m: int, n: int, itemsize_bytes: int, address: int) -> dict[str, str] | None:
    """What the kernels of `argmax` are compiled with, but for ELEMENT, for a matrix (m, n) at this address; None where they
    are not for it. One thread a row is the kernel `argmax_known_serial`.

    >>> argmax_defines(7, 2, 2, 256), argmax_defines(40, 100, 4, 256), argmax_defines(300, 256, 4, 256)
    ({'LENGTH': '2', 'LANES': '1', 'UNIT': '2'}, {'LENGTH': '100', 'LANES': '32', 'UNIT': '1'}, None)
    """
    shared_by = lanes(m, n)
    if shared_by is None:
        return None
    serial = shared_by == 1 and m <= SERIAL_ROWS
    unit = serial_unit(n, itemsize_bytes, address) if serial else 1
    return {"LENGTH": str(n), "LANES": str(shared_by), "UNIT": str(unit)}


def argmax_many_defines(n: int, itemsize_bytes: int) -> dict[str, str] | None:
    """What the kernel for many rows of n elements is compiled with, but for ELEMENT; None for more than 8 elements.

    A thread has two rows of less than 16 bytes, so that it stores 16 bytes of indices, else one.

    >>> argmax_many_defines(2, 4), argmax_many_defines(5, 2), argmax_many_defines(8, 4), argmax_many_defines(9, 4)
    ({'LENGTH': '2', 'LANES': '1', 'UNIT': '4', 'SET_ROWS': '2'}, {'LENGTH': '5', 'LANES': '1', 'UNIT': '2', 'SET_ROWS': '2'}, \
{'LENGTH': '8', 'LANES': '1', 'UNIT': '4', 'SET_ROWS': '1'}, None)
    """
    if n > LONGEST_OF_MANY:
        return None
    rows = 2 if n * itemsize_bytes < VEC16_BYTES else 1
    unit = math.gcd(VEC16_BYTES, rows * n * itemsize_bytes) // itemsize_bytes
    return {"LENGTH": str(n), "LANES": "1", "UNIT": str(unit), "SET_ROWS": str(rows)}


def bind_argmax(x_MN: Tensor) -> Launch:
    """Few short rows of a contiguous matrix (M, N), or many of at most 8 elements; others as `bind_argmax_vec16`.

    Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    shape = argmax_defines(m, n, x_MN.element_size(), x_MN.data_ptr())
    if shape is None:
        many = argmax_many_defines(n, x_MN.element_size()) if aligned(x_MN) else None
        return bind_argmax_vec16(x_MN) if many is None else _bind_argmax_of_many(x_MN, many)
    serial = shape["LANES"] == "1" and m <= SERIAL_ROWS
    name = "argmax_known_serial" if serial else "argmax_known_length"
    kernel = nvrtc.kernel(ARGMAX_SOURCE, name, {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | shape)
    out_M = torch.empty(m, dtype=torch.int64, device=x_MN.device)
    blocks, threads = (1, m) if serial else (-(-m * int(shape["LANES"]) // THREADS), THREADS)
    last = () if serial else (ctypes.c_int(m - 1),)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, x_MN.data_ptr(), out_M.data_ptr(), *last)
        return out_M

    return launch


def _bind_argmax_of_many(x_MN: Tensor, shape: dict[str, str]) -> Launch:
    import torch

    m = x_MN.shape[0]
    kernel = nvrtc.kernel(ARGMAX_SOURCE, "argmax_known_many", {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | shape)
    out_M = torch.empty(m, dtype=torch.int64, device=x_MN.device)
    blocks, rows = -(-m // (THREADS * int(shape["SET_ROWS"]))), ctypes.c_longlong(m)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, x_MN.data_ptr(), out_M.data_ptr(), rows)
        return out_M

    return launch


def _bind_tiny_rows(x_MN: Tensor) -> Launch:
    import torch

    m, n = x_MN.shape
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "LENGTH": str(n)}
    kernel = nvrtc.kernel(TINY_ROWS_SOURCE, "row_sum_tiny_rows", defines)
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)
    blocks = -(-m * n * x_MN.element_size() // (VEC16_BYTES * THREADS))
    rows = ctypes.c_longlong(m)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, x_MN.data_ptr(), out_M.data_ptr(), rows)
        return out_M

    return launch
