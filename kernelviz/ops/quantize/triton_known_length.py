"""Triton kernel of `quantize_fp8` and `quantize_int8` that is compiled for the number and length of short rows."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.quantize import triton as kernels
from kernelviz.ops.quantize.reference import SMALLEST, largest

LONGEST_ROW = 1024
"""Elements of a row, and of all rows of a program where rows are many."""
ROWS_OF_ONE = 256
"""The fewest of one element that a program has, if there are so many. H200: 512 programs of one bf16 each take 1.41 us, and two
of 256 1.03 in torch.compile; of 22,256 fp16, 348 programs of 64 take 1.35 and 87 of 256 1.25."""
FEWEST_ELEMENTS = 128
"""Of a program of several rows, four a lane of a warp, because each program takes time to start: an estimate. H200, int8: 360
rows of 8 fp16 take 1.35 us by programs of one and 1.16 in CUDA C++, whose warps have more."""
ROW_OF_A_WARP = 256
"""Elements of a row, from which on a warp has all rows of a program, if they are several."""


def tile_of(m: int, n: int, count: int) -> tuple[int, int, int]:
    """Rows of a program, elements that it has of each, and its warps: 1024 elements of many rows, with as few rows a program
    as leave two programs for each of the GPU's `count` SMs, or as have 128 elements, and of one element two a thread of up to
    four warps.

    Several rows of at least 256 elements are those of one warp, which needs no barrier. H200: torch.compile takes 1.55 us for
    89 rows of 157 bf16 with one row a program, and CUDA C++ 2.00 with a block a row.

    >>> tile_of(89, 157, 132), tile_of(18597, 20, 132), tile_of(2**20, 246, 132), tile_of(2, 573, 132)
    ((1, 256, 2), (32, 32, 2), (4, 256, 1), (1, 1024, 4))
    >>> tile_of(22256, 1, 132), tile_of(2**24, 1, 132), tile_of(38, 4, 132), tile_of(1, 1, 132)
    ((256, 1, 4), (1024, 1, 4), (32, 4, 1), (1, 1, 1))
    >>> tile_of(360, 8, 132), tile_of(2, 5, 132)
    ((16, 8, 1), (2, 8, 1))
    """
    length = triton.next_power_of_2(n)
    rows = max(1, LONGEST_ROW // length)
    fewest = max(1, min(triton.next_power_of_2(m), ROWS_OF_ONE if length == 1 else FEWEST_ELEMENTS // length))
    while rows > fewest and triton.cdiv(m, rows) < 2 * count:
        rows //= 2
    if length == 1:
        return rows, length, min(4, max(1, rows // 64))
    if rows > 1 and length >= ROW_OF_A_WARP:
        return rows, length, 1
    return rows, length, 4 if length > LONGEST_ROW // 2 else min(2, max(1, rows * length // 128))


@triton.jit
def known_length_kernel(
    x_ptr,
    q_ptr,
    scale_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    SMALLEST: tl.constexpr,
    LARGEST: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    rows = program * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    here = rows * N + columns
    inside = (rows < M) & (columns < N)
    x = tl.load(x_ptr + here, mask=inside, other=0.0).to(tl.float32)
    most = tl.maximum(kernels._largest_magnitude(x, 1, True), SMALLEST, propagate_nan=tl.PropagateNan.ALL)
    tl.store(scale_ptr + rows, most / LARGEST, mask=rows < M)
    # One division a row, not one an element.
    tl.store(q_ptr + here, kernels._converted(x * (LARGEST / most), q_ptr.dtype.element_ty), mask=inside)


def bind_quantize(x_MN: torch.Tensor, target: str) -> Launch:
    """Rows of up to 1024 elements to fp8 or int8; longer ones as in the kernel for any length.

    Raises BadField for a matrix that is not contiguous.
    """
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if n > LONGEST_ROW:
        return kernels.bind_quantize(x_MN, target)
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    rows, length, warps = tile_of(m, n, multiprocessors(x_MN.device))
    programs = triton.cdiv(m, rows)
    constants = {"M": m, "N": n, "SMALLEST": SMALLEST, "LARGEST": largest(target), "ROWS": rows, "BLOCK": length}
    # Indices of the last program, some of which may be behind the matrix, in 32 bits.
    wide = programs * rows * n + length >= 2**31

    def launch() -> tuple[torch.Tensor, ...]:
        known_length_kernel[(programs,)](x_MN, q_MN, scale_M, **constants, WIDE=wide, num_warps=warps)
        return q_MN, scale_M

    return launch
