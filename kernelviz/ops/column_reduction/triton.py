"""Triton kernel of `column_sum`: a program adds up the rows of a block of columns, or of a part of them."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

WIDEST_BLOCK = 128
"""Columns of a block: 256 bytes of each row in half precision."""
BLOCK_BYTES = 16 * 1024
"""64 bytes a thread of 8 warps, so that each thread has four 16-byte loads in flight."""
WARPS = 8
PROGRAMS_A_MULTIPROCESSOR = 4


@triton.jit
def column_sum_kernel(x_ptr, out_ptr, m, n, part_rows, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr):
    columns = tl.program_id(0) * BLOCK_N + tl.arange(0, BLOCK_N)
    rows = tl.arange(0, BLOCK_M)
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    part = tl.program_id(1).to(tl.int64)
    first = part * part_rows
    last = tl.minimum(first + part_rows, m)
    # A sum for each element of the block, so that threads synchronise only once, after the loop.
    sums = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(first, last, BLOCK_M):
        at = start + rows
        mask = (at < last)[:, None] & (columns < n)[None, :]
        sums += tl.load(x_ptr + at[:, None] * n + columns[None, :], mask=mask, other=0.0).to(tl.float32)
    total = tl.sum(sums, axis=0)
    tl.store(out_ptr + part * n + columns, total.to(out_ptr.dtype.element_ty), mask=columns < n)


def block_of(n: int, itemsize_bytes: int) -> tuple[int, int]:
    """Rows and columns of a block: 16 KiB, at most 128 columns.

    >>> block_of(4096, 2), block_of(4096, 4), block_of(5, 4)
    ((64, 128), (32, 128), (512, 8))
    """
    across = min(WIDEST_BLOCK, int(triton.next_power_of_2(n)))
    return BLOCK_BYTES // (across * itemsize_bytes), across


def parts_of(m: int, strips: int, block_rows: int, count: int) -> int:
    """Parts of the rows on a GPU of `count` SMs: about four programs an SM in all, each with at least a block of rows.

    >>> parts_of(4096, 32, 64, 132), parts_of(4096, 1024, 64, 132), parts_of(100, 1, 64, 132)
    (17, 1, 2)
    """
    return max(1, min(-(-PROGRAMS_A_MULTIPROCESSOR * count // strips), -(-m // block_rows)))


def bind_columns(x_MN: torch.Tensor) -> Launch:
    """One program for each block of columns; raises BadField for a matrix that is not contiguous."""
    require_contiguous(x_MN=x_MN)
    (m, n), out_N = x_MN.shape, _sums(x_MN)
    down, across = block_of(n, x_MN.element_size())
    grid = (triton.cdiv(n, across), 1)

    def launch() -> torch.Tensor:
        column_sum_kernel[grid](x_MN, out_N, m, n, m, BLOCK_M=down, BLOCK_N=across, num_warps=WARPS)
        return out_N

    return launch


def bind_split(x_MN: torch.Tensor) -> Launch:
    """The rows in parts, whose sums a second launch of the same kernel adds up; raises BadField for strided matrices."""
    require_contiguous(x_MN=x_MN)
    (m, n), out_N = x_MN.shape, _sums(x_MN)
    down, across = block_of(n, x_MN.element_size())
    strips = triton.cdiv(n, across)
    parts = parts_of(m, strips, down, multiprocessors(x_MN.device))
    part_rows = triton.cdiv(m, parts * down) * down
    parts = triton.cdiv(m, part_rows)
    if parts == 1:
        return bind_columns(x_MN)
    sums_PN = torch.empty((parts, n), dtype=torch.float32, device=x_MN.device)
    last_down, last_across = block_of(n, sums_PN.element_size())

    def launch() -> torch.Tensor:
        column_sum_kernel[(strips, parts)](
            x_MN, sums_PN, m, n, part_rows, BLOCK_M=down, BLOCK_N=across, num_warps=WARPS
        )
        column_sum_kernel[(strips, 1)](
            sums_PN, out_N, parts, n, parts, BLOCK_M=last_down, BLOCK_N=last_across, num_warps=WARPS
        )
        return out_N

    return launch


def _sums(x_MN: torch.Tensor) -> torch.Tensor:
    return torch.empty(x_MN.shape[1], dtype=x_MN.dtype, device=x_MN.device)
