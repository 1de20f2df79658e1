"""Triton kernels of the chains: all steps on one read and one write."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.triton_divisors import divisor_of

ROW_BYTES, ROW_WARPS, COLUMNS, FEWEST_COLUMNS = 64, 8, 2048, 256
"""Of a program with rows: bytes a thread (so that four rows share the loaded s and b), warps, most and fewest columns."""


def scalar_bytes(steps: int) -> int:
    """Bytes of a thread. On an H200 2^28 elements in bf16 take 248 us with 16 bytes for one step, 334 for eight (287 with 64).

    >>> scalar_bytes(1), scalar_bytes(8)
    (16, 64)
    """
    return 16 if steps < 4 else 64


@triton.jit
def chain_rows_kernel(
    x_ptr, s_ptr, b_ptr, out_ptr, m, n, k, across, ROWS: tl.constexpr, COLUMNS: tl.constexpr, DIVISOR: tl.constexpr
):
    # The same number, of which the compiler now knows a divisor: loads and stores of so many elements are aligned.
    n = n // DIVISOR * DIVISOR
    down = tl.program_id(0) // across
    columns = ((tl.program_id(0) % across) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    rows = down.to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    inside = columns < n
    mask = inside & (rows < m)
    v = tl.load(x_ptr + rows * n + columns, mask=mask, other=0.0).to(tl.float32)
    for _ in range(k):
        s = tl.load(s_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        b = tl.load(b_ptr + columns, mask=inside, other=0.0).to(tl.float32)
        v = tl.maximum(v * s + b, 0.0, propagate_nan=tl.PropagateNan.ALL)
        s_ptr += n
        b_ptr += n
    tl.store(out_ptr + rows * n + columns, v.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def chain_scalars_kernel(x_ptr, s_ptr, b_ptr, out_ptr, n, k, BLOCK: tl.constexpr):
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    v = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    for step in range(k):
        s = tl.load(s_ptr + step).to(tl.float32)
        b = tl.load(b_ptr + step).to(tl.float32)
        v = tl.maximum(v * s + b, 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + offsets, v.to(out_ptr.dtype.element_ty), mask=mask)


def tile_of(m: int, n: int, itemsize_bytes: int, count: int) -> tuple[int, int, int]:
    """Rows, columns and warps of a program; smaller ones with four elements a thread where the GPU's `count` SMs would have
    fewer than two programs each.

    >>> tile_of(32768, 4096, 2, 132), tile_of(16, 4096, 2, 132)
    ((4, 2048, 8), (1, 256, 2))
    """
    elements = 32 * ROW_WARPS * ROW_BYTES // itemsize_bytes
    columns = min(elements, COLUMNS, triton.next_power_of_2(n))
    rows = elements // columns
    if triton.cdiv(n, columns) * triton.cdiv(m, rows) >= 2 * count:
        return rows, columns, ROW_WARPS
    while rows > 1 and triton.cdiv(n, columns) * triton.cdiv(m, rows) < 2 * count:
        rows //= 2
    while columns > FEWEST_COLUMNS and triton.cdiv(n, columns) * triton.cdiv(m, rows) < 2 * count:
        columns //= 2
    return rows, columns, max(1, min(ROW_WARPS, rows * columns // 128))


def bind_rows(x_MN: torch.Tensor, s_KN: torch.Tensor, b_KN: torch.Tensor) -> Launch:
    """Tiles of up to 2048 columns; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_MN=x_MN, s_KN=s_KN, b_KN=b_KN)
    out_MN = torch.empty_like(x_MN)
    (m, n), k = x_MN.shape, s_KN.shape[0]
    rows, columns, warps = tile_of(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    across = triton.cdiv(n, columns)
    grid = (across * triton.cdiv(m, rows),)

    def launch() -> torch.Tensor:
        chain_rows_kernel[grid](
            x_MN,
            s_KN,
            b_KN,
            out_MN,
            m,
            n,
            k,
            across,
            ROWS=rows,
            COLUMNS=columns,
            DIVISOR=divisor_of(n),
            num_warps=warps,
        )
        return out_MN

    return launch


def bind_scalars(x_N: torch.Tensor, s_K: torch.Tensor, b_K: torch.Tensor) -> Launch:
    """Blocks of a vector; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_N=x_N, s_K=s_K, b_K=b_K)
    out_N = torch.empty_like(x_N)
    n, k = x_N.numel(), s_K.shape[0]
    block = 128 * scalar_bytes(k) // x_N.element_size()
    grid = (triton.cdiv(n, block),)

    def launch() -> torch.Tensor:
        chain_scalars_kernel[grid](x_N, s_K, b_K, out_N, n, k, BLOCK=block, num_warps=4)
        return out_N

    return launch
