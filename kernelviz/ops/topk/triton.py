"""Triton kernel of `topk`: a bitonic network keeps the largest elements so far."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

LARGEST_K = 1024
LONGEST_BLOCK = 4096
TILE = 512
"""Elements that a warp sorts at once, 16 a thread."""
PROGRAMS_A_MULTIPROCESSOR = 16
"""Warps of other rows that hide the latency of a network, before a warp has several rows: an estimate."""
NOTHING = tl.constexpr(-9223372036854775808)


@triton.jit
def bitonic_topk_kernel(x_ptr, values_ptr, indices_ptr, n, k, K: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, BLOCK)
    best = tl.full((K,), NOTHING, tl.int64)
    for first in range(0, n, BLOCK):
        at = first + columns
        x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
        # Whole numbers in the order of the floats, NaN above all; below them the index, smaller ones above.
        bits = x.to(tl.int32, bitcast=True)
        key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
        key = tl.where(x != x, 0x7FFFFFFF, key)
        entry = (key.to(tl.int64) << 32) | (0x7FFFFFFF - at).to(tl.int64)
        mine = tl.topk(tl.where(at < n, entry, NOTHING), K)
        best = tl.topk(tl.reshape(tl.join(best, mine), (2 * K,)), K)
    # The element is read again from L2, so that its bits are exact.
    position = 0x7FFFFFFF - (best & 0xFFFFFFFF)
    ranks = tl.arange(0, K)
    value = tl.load(x_ptr + row * n + position, mask=ranks < k, other=0.0)
    tl.store(values_ptr + row * k + ranks, value, mask=ranks < k)
    tl.store(indices_ptr + row * k + ranks, position, mask=ranks < k)


@triton.jit
def bitonic_rows_kernel(
    x_ptr, values_ptr, indices_ptr, m, n, k, K: tl.constexpr, BLOCK: tl.constexpr, ROWS: tl.constexpr
):
    """ROWS rows of at most BLOCK elements: sorted as one tile, so that a warp has several, and nothing is merged."""
    rows = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    columns, ranks = tl.arange(0, BLOCK)[None, :], tl.arange(0, K)[None, :]
    start, is_row = (rows * n)[:, None], (rows < m)[:, None]
    inside = is_row & (columns < n)
    x = tl.load(x_ptr + start + columns, mask=inside, other=0.0).to(tl.float32)
    bits = x.to(tl.int32, bitcast=True)
    key = tl.where(bits < 0, bits ^ 0x7FFFFFFF, bits)
    key = tl.where(x != x, 0x7FFFFFFF, key)
    entry = (key.to(tl.int64) << 32) | (0x7FFFFFFF - columns).to(tl.int64)
    best = tl.topk(tl.where(inside, entry, NOTHING), K)
    position = 0x7FFFFFFF - (best & 0xFFFFFFFF)
    is_one = is_row & (ranks < k)
    value = tl.load(x_ptr + start + position, mask=is_one, other=0.0)
    at = (rows * k)[:, None] + ranks
    tl.store(values_ptr + at, value, mask=is_one)
    tl.store(indices_ptr + at, position, mask=is_one)


def rows_of_program(m: int, block: int, count: int) -> int:
    """Rows that a program sorts at once, on a GPU of `count` SMs: 512 elements, but no fewer than 16 programs an SM.

    >>> [rows_of_program(m, 16, 132) for m in (10, 5000, 10**6)], rows_of_program(10**6, 1024, 132)
    ([1, 2, 32], 1)
    """
    rows = max(1, TILE // block)
    while rows > 1 and m < rows * PROGRAMS_A_MULTIPROCESSOR * count:
        rows //= 2
    return rows


def bind_bitonic(x_MN: torch.Tensor, k: int) -> Launch:
    """A program a row, or several short ones, of a contiguous matrix (M, N).

    Raises BadField if it is not contiguous or k is above 1024 or the row length.
    """
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if not 1 <= k <= min(n, LARGEST_K):
        raise BadField("size k", k, f"this kernel takes 1 to {min(n, LARGEST_K)} of rows of {n}")
    values_MK = torch.empty((m, k), dtype=x_MN.dtype, device=x_MN.device)
    indices_MK = torch.empty((m, k), dtype=torch.int64, device=x_MN.device)
    width = max(2, triton.next_power_of_2(k))
    block = max(width, min(triton.next_power_of_2(n), LONGEST_BLOCK))
    warps = max(1, min(8, block // 256))
    rows = rows_of_program(m, block, multiprocessors(x_MN.device))

    def launch_rows() -> tuple[torch.Tensor, ...]:
        sizes = {"K": width, "BLOCK": block, "ROWS": rows}
        bitonic_rows_kernel[(triton.cdiv(m, rows),)](x_MN, values_MK, indices_MK, m, n, k, **sizes, num_warps=warps)
        return values_MK, indices_MK

    def launch() -> tuple[torch.Tensor, ...]:
        bitonic_topk_kernel[(m,)](x_MN, values_MK, indices_MK, n, k, K=width, BLOCK=block, num_warps=warps)
        return values_MK, indices_MK

    return launch_rows if n <= block else launch
