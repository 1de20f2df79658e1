"""Triton kernels of `rmsnorm`: a row in registers where it fits, in chunks where it does not."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.layout import require_contiguous
from kernelviz.ops.op import Launch

BYTES_PER_THREAD = 32
"""Of a row: two 16-byte loads a thread are under way at once, and 1024 threads an SM still have 64 registers each."""
LONGEST_ROW_BYTES = 64 * 1024
"""The longest row (padded to a power of two) that one program of 1024 threads keeps in registers."""
LONGEST_PREFETCHED_BYTES = 32 * 1024
"""The same where the registers also hold the next row and the weight."""
CHUNK_BYTES = 32 * 1024
"""Of longer rows, by programs of 1024 threads: one an SM, so that the rows under way (33 MB for rows of 256 KB on an H200)
stay in L2 for their second reading."""


@triton.jit
def row_kernel(x_ptr, w_ptr, out_ptr, n, eps, BLOCK: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    # Asked for before the row is reduced, so that both loads are in flight together.
    # No eviction hints: with evict_first on x the H200 reads rows of 8 KiB at 4045 instead of 4239 GB/s.
    w = tl.load(w_ptr + columns, mask=mask, other=0.0)
    x = tl.load(x_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    tl.store(out_ptr + start + columns, (x * scale * w.to(tl.float32)).to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _normalise_in_chunks(x_ptr, w_ptr, out_ptr, start, n, eps, CHUNK: tl.constexpr):
    columns = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(n, CHUNK)
    # Several chunks are under way at once: with one, each would wait for the memory's full latency.
    for i in tl.range(0, chunks, num_stages=3):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        squares += x * x
    scale = tl.rsqrt(tl.sum(squares, axis=0) / n + eps)
    # Backwards: the chunks read last are the likeliest to be in L1 and L2 still.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        tl.store(out_ptr + start + at, (x * scale * w).to(out_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def chunked_row_kernel(x_ptr, w_ptr, out_ptr, n, eps, CHUNK: tl.constexpr):
    _normalise_in_chunks(x_ptr, w_ptr, out_ptr, tl.program_id(0).to(tl.int64) * n, n, eps, CHUNK)


@triton.jit
def persistent_kernel(x_ptr, w_ptr, out_ptr, m, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < n
    here = tl.arange(0, ROWS)[:, None] * n + columns
    w = tl.load(w_ptr + columns, mask=inside, other=0.0)
    step = tl.num_programs(0) * ROWS
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)[:, None]
    start = first.to(tl.int64) * n
    ahead = tl.load(x_ptr + start + here, mask=inside & (rows < m), other=0.0)
    for _ in range(first, m, step):
        x = ahead.to(tl.float32)
        # The next rows are on their way while these are reduced.
        following = start + step.to(tl.int64) * n
        mask = inside & (rows + step < m)
        ahead = tl.load(x_ptr + following + here, mask=mask, other=0.0)
        scale = tl.rsqrt(tl.sum(x * x, axis=1, keep_dims=True) / n + eps)
        y = (x * scale * w.to(tl.float32)).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + start + here, y, mask=inside & (rows < m))
        start = following
        rows += step


@triton.jit
def chunked_persistent_kernel(x_ptr, w_ptr, out_ptr, m, n, eps, CHUNK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    for _ in range(tl.program_id(0), m, tl.num_programs(0)):
        _normalise_in_chunks(x_ptr, w_ptr, out_ptr, start, n, eps, CHUNK)
        start += tl.num_programs(0).to(tl.int64) * n


def warps_for(tile_bytes: int) -> int:
    """Warps of a program: 32 bytes a thread, 64 rather than more than 16 warps (rows of 32 KiB: 4189 against 3005 GB/s).

    >>> [warps_for(b) for b in (16, 2048, 16384, 32768, 65536)]
    [1, 2, 16, 16, 32]
    """
    warps = max(1, min(32, tile_bytes // (32 * BYTES_PER_THREAD)))
    return 16 if tile_bytes <= 32 * 1024 and warps > 16 else warps


def rows_a_program(row_bytes: int) -> int:
    """Rows that a persistent program takes at once: short ones together, so that 128 threads have 32 bytes each.

    >>> [rows_a_program(b) for b in (256, 2048, 8192)]
    [16, 2, 1]
    """
    return max(1, 128 * BYTES_PER_THREAD // row_bytes)


def multiprocessors(device: torch.device) -> int:
    """SMs of a GPU; 1 in Triton's interpreter, which runs the programs one after the other on the CPU."""
    return int(torch.cuda.get_device_properties(device).multi_processor_count) if device.type == "cuda" else 1


def bind_block_per_row(x_MN: torch.Tensor, w_N: torch.Tensor, *, eps: float) -> Launch:
    """One program a row of a contiguous matrix (M, N) with a weight (N); raises BadField for others."""
    require_contiguous(x_MN=x_MN, w_N=w_N)
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    block = triton.next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    warps = warps_for(row_bytes)
    chunk = CHUNK_BYTES // x_MN.element_size()

    def in_registers() -> torch.Tensor:
        row_kernel[(m,)](x_MN, w_N, out_MN, n, eps, BLOCK=block, num_warps=warps)
        return out_MN

    def in_chunks() -> torch.Tensor:
        chunked_row_kernel[(m,)](x_MN, w_N, out_MN, n, eps, CHUNK=chunk, num_warps=32)
        return out_MN

    return in_registers if row_bytes <= LONGEST_ROW_BYTES else in_chunks


def bind_persistent(x_MN: torch.Tensor, w_N: torch.Tensor, *, eps: float) -> Launch:
    """As many programs as the GPU holds at once, each walking rows of a contiguous matrix (M, N) with a weight (N).

    Raises BadField for tensors that are not contiguous.
    """
    require_contiguous(x_MN=x_MN, w_N=w_N)
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    block = triton.next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    rows = rows_a_program(row_bytes)
    warps = warps_for(rows * row_bytes)
    processors = multiprocessors(x_MN.device)
    programs = min(triton.cdiv(m, rows), processors * (32 // warps))
    chunk = CHUNK_BYTES // x_MN.element_size()

    def in_registers() -> torch.Tensor:
        persistent_kernel[(programs,)](x_MN, w_N, out_MN, m, n, eps, ROWS=rows, BLOCK=block, num_warps=warps)
        return out_MN

    def in_chunks() -> torch.Tensor:
        chunked_persistent_kernel[(min(m, processors),)](x_MN, w_N, out_MN, m, n, eps, CHUNK=chunk, num_warps=32)
        return out_MN

    return in_registers if row_bytes <= LONGEST_PREFETCHED_BYTES else in_chunks
