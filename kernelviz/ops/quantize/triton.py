"""Triton kernels of `quantize_fp8`, `quantize_int8` and `rmsnorm_quantize_fp8` (with a weight), one source for the three."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.quantize.reference import SMALLEST, largest

BYTES_PER_THREAD = 32
"""Of a row, so that each thread has two 16-byte loads in flight."""
LONGEST_ROW_BYTES = 64 * 1024
"""The longest row (padded to a power of two) that one program of 1024 threads keeps in registers."""
CHUNK_BYTES = 32 * 1024
"""Of longer rows, by programs of 1024 threads."""
TO_NEAREST = tl.constexpr(12582912.0)
"""1.5 · 2^23: fp32 numbers near it are integers, so adding it rounds to the nearest integer, ties to even."""


@triton.jit
def _converted(value, dtype: tl.constexpr):
    if dtype == tl.int8:
        return ((value + TO_NEAREST) - TO_NEAREST).to(tl.int32).to(tl.int8)
    # In fp32 the largest element divided by the scale may be slightly more than 448.
    above = tl.maximum(value, -448.0, propagate_nan=tl.PropagateNan.ALL)
    return tl.minimum(above, 448.0, propagate_nan=tl.PropagateNan.ALL).to(dtype)


@triton.jit
def _largest_magnitude(x, axis: tl.constexpr, keep_dims: tl.constexpr):
    """NaN if there is one, which tl.max would leave out: its bits are those of a number above infinity."""
    bits = tl.abs(x).to(tl.int32, bitcast=True)
    return tl.max(bits, axis=axis, keep_dims=keep_dims).to(tl.float32, bitcast=True)


@triton.jit
def rows_kernel(x_ptr, w_ptr, q_ptr, scale_ptr, m, n, eps, smallest, largest, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    columns = tl.arange(0, BLOCK)[None, :]
    mask = (rows < m) & (columns < n)
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    here = rows.to(tl.int64) * n + columns
    x = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32)
    if w_ptr is not None:
        scale = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / n + eps)
        x = x * scale * tl.load(w_ptr + columns, mask=columns < n, other=0.0).to(tl.float32)
    most = tl.maximum(_largest_magnitude(x, 1, True), smallest, propagate_nan=tl.PropagateNan.ALL)
    tl.store(scale_ptr + rows, most / largest, mask=rows < m)
    # One division a row, not one an element.
    tl.store(q_ptr + here, _converted(x * (largest / most), q_ptr.dtype.element_ty), mask=mask)


@triton.jit
def long_rows_kernel(x_ptr, w_ptr, q_ptr, scale_ptr, n, eps, smallest, largest, CHUNK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, CHUNK)
    most = tl.zeros((CHUNK,), tl.float32)
    squares = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(n, CHUNK)
    # Several chunks are in flight at once: with one, each would wait for the full latency of memory.
    for i in tl.range(0, chunks, num_stages=3):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        if w_ptr is not None:
            squares += x * x
            x = x * tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        most = tl.maximum(most, tl.abs(x), propagate_nan=tl.PropagateNan.ALL)
    scale = 1.0
    if w_ptr is not None:
        scale = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
    top = tl.maximum(_largest_magnitude(most, 0, False) * scale, smallest, propagate_nan=tl.PropagateNan.ALL)
    tl.store(scale_ptr + tl.program_id(0), top / largest)
    factor = scale * (largest / top)
    # Backwards, because the chunks read last are the most likely to be in L1 and L2.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        if w_ptr is not None:
            x = x * tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(q_ptr + start + at, _converted(x * factor, q_ptr.dtype.element_ty), mask=at < n)


def bind_quantize(x_MN: torch.Tensor, target: str) -> Launch:
    """To fp8 or int8; raises BadField for a matrix that is not contiguous."""
    require_contiguous(x_MN=x_MN)
    return _bind(x_MN, None, target, 0.0)


def bind_rmsnorm_quantize(x_MN: torch.Tensor, w_N: torch.Tensor, *, eps: float) -> Launch:
    """Normalised rows to fp8; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_MN=x_MN, w_N=w_N)
    return _bind(x_MN, w_N, "fp8", eps)


def tile_for(n: int, itemsize_bytes: int) -> tuple[int, int, int]:
    """Rows of a program, its block (n padded to a power of two) and its warps: 32 bytes a thread, at least 128 threads.

    >>> tile_for(128, 2), tile_for(4096, 2), tile_for(32768, 2)
    ((16, 128, 4), (1, 4096, 8), (1, 32768, 32))
    """
    block = triton.next_power_of_2(n)
    rows = max(1, 128 * BYTES_PER_THREAD // (block * itemsize_bytes))
    warps = max(1, min(32, rows * block * itemsize_bytes // (32 * BYTES_PER_THREAD)))
    return rows, block, warps


def _bind(x_MN: torch.Tensor, w_N: torch.Tensor | None, target: str, eps: float) -> Launch:
    m, n = x_MN.shape
    q_MN = torch.empty_like(x_MN, dtype=torch.int8 if target == "int8" else torch.float8_e4m3fn)
    scale_M = torch.empty(m, dtype=torch.float32, device=x_MN.device)
    rows, block, warps = tile_for(n, x_MN.element_size())
    chunk = CHUNK_BYTES // x_MN.element_size()
    # Registers that let an SM have 2048 threads with 32 bytes of a row each, or 1024 with 64 bytes.
    registers = 32 if rows * block * x_MN.element_size() <= warps * 32 * BYTES_PER_THREAD else 64
    pointers, numbers = (x_MN, w_N, q_MN, scale_M), (eps, SMALLEST, largest(target))

    def in_registers() -> tuple[torch.Tensor, ...]:
        rows_kernel[(triton.cdiv(m, rows),)](
            *pointers, m, n, *numbers, ROWS=rows, BLOCK=block, num_warps=warps, maxnreg=registers
        )
        return q_MN, scale_M

    def in_chunks() -> tuple[torch.Tensor, ...]:
        long_rows_kernel[(m,)](*pointers, n, *numbers, CHUNK=chunk, num_warps=32)
        return q_MN, scale_M

    return in_registers if block * x_MN.element_size() <= LONGEST_ROW_BYTES else in_chunks
