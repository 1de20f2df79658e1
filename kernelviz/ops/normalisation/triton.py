"""Triton kernels of `rmsnorm`, `layernorm` and `add_rmsnorm`: a row in registers where it fits, in chunks where it does not.

One source for the three: `r_ptr` and `s_ptr` are None except in add_rmsnorm, `b_ptr` is None except in layernorm, whose rows are
CENTRED.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

BYTES_PER_THREAD = 32
"""Of a row, so that each thread has two 16-byte loads in flight and 1024 threads an SM still have 64 registers each."""
LONGEST_ROW_BYTES = 64 * 1024
"""The longest row (padded to a power of two) that one program of 1024 threads keeps in registers."""
LONGEST_PREFETCHED_BYTES = 32 * 1024
"""The same where registers also hold the next row and the weight or the residual's next row (half as long with both)."""
CHUNK_BYTES = 32 * 1024
"""Of longer rows, by programs of 1024 threads: one an SM, so that the rows in flight (33 MB for rows of 256 KB on an H200) stay
in L2 until they are read again."""


@triton.jit
def _scaled(x, mask, n, eps, axis: tl.constexpr, CENTRED: tl.constexpr):
    """The normalised row, from its values in fp32."""
    if CENTRED:
        # Two passes over registers, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
        x = tl.where(mask, x - tl.sum(x, axis=axis, keep_dims=True) / n, 0.0)
    return x * tl.rsqrt(tl.sum(x * x, axis=axis, keep_dims=True) / n + eps)


@triton.jit
def _weighted(y, w, b, HAS_BIAS: tl.constexpr):
    y = y * w.to(tl.float32)
    if HAS_BIAS:
        y += b.to(tl.float32)
    return y


@triton.jit
def row_kernel(x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, n, eps, BLOCK: tl.constexpr, CENTRED: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    # No eviction hints: with evict_first on x the H200 reads rows of 8 KiB at 4045 instead of 4239 GB/s.
    x = tl.load(x_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
    if r_ptr is not None:
        r = tl.load(r_ptr + start + columns, mask=mask, other=0.0)
        # The sum as it is stored, so that s is the row that is normalised.
        s = (x + r.to(tl.float32)).to(s_ptr.dtype.element_ty)
        tl.store(s_ptr + start + columns, s, mask=mask)
        x = s.to(tl.float32)
    y = _scaled(x, mask, n, eps, 0, CENTRED)
    # Not before the row is reduced: they are in L1, and registers for them would leave room for fewer programs on the SM
    # (layernorm, rows of 16 KiB: 3058 GB/s with 49 registers, 4231 with 32).
    w = tl.load(w_ptr + columns, mask=mask, other=0.0)
    b = w
    if b_ptr is not None:
        b = tl.load(b_ptr + columns, mask=mask, other=0.0)
    y = _weighted(y, w, b, b_ptr is not None)
    tl.store(y_ptr + start + columns, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _normalise_in_chunks(
    x_ptr,
    r_ptr,
    w_ptr,
    b_ptr,
    s_ptr,
    y_ptr,
    start,
    n,
    eps,
    CHUNK: tl.constexpr,
    STAGES: tl.constexpr,
    CENTRED: tl.constexpr,
):
    columns = tl.arange(0, CHUNK)
    # One for each column of the chunk, so that threads do not synchronise before the end of the row.
    squares = tl.zeros((CHUNK,), tl.float32)
    means = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(n, CHUNK)
    # Several chunks are in flight at once: with one, each would wait for the full latency of memory.
    for i in tl.range(0, chunks, num_stages=STAGES):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        if r_ptr is not None:
            r = tl.load(r_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first")
            s = (x + r.to(tl.float32)).to(s_ptr.dtype.element_ty)
            tl.store(s_ptr + start + at, s, mask=at < n)
            x = s.to(tl.float32)
        if CENTRED:
            # Welford: the mean of the column so far, and the sum of squared distances from it.
            away = tl.where(at < n, x - means, 0.0)
            means += away * (1.0 / (i + 1))
            squares += tl.where(at < n, away * (x - means), 0.0)
        else:
            squares += x * x
    mean = 0.0
    total = tl.sum(squares, axis=0)
    if CENTRED:
        seen = tl.where(columns < n, (n - 1 - columns) // CHUNK + 1, 0).to(tl.float32)
        mean = tl.sum(means * seen, axis=0) / n
        total += tl.sum((means - mean) * (means - mean) * seen, axis=0)
    scale = tl.rsqrt(total / n + eps)
    if r_ptr is not None:
        # Data that other threads of the program have written is read below.
        tl.debug_barrier()
        x_ptr = s_ptr
    # Backwards, because the chunks read last are the most likely to be in L1 and L2.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + at, mask=at < n, other=0.0, eviction_policy="evict_last")
        b = w
        if b_ptr is not None:
            b = tl.load(b_ptr + at, mask=at < n, other=0.0, eviction_policy="evict_last")
        y = _weighted((x - mean) * scale, w, b, b_ptr is not None)
        tl.store(y_ptr + start + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def chunked_row_kernel(
    x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, n, eps, CHUNK: tl.constexpr, STAGES: tl.constexpr, CENTRED: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * n
    _normalise_in_chunks(x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, start, n, eps, CHUNK, STAGES, CENTRED)


@triton.jit
def persistent_kernel(
    x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, m, n, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr, CENTRED: tl.constexpr
):
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < n
    here = tl.arange(0, ROWS)[:, None] * n + columns
    w = tl.load(w_ptr + columns, mask=inside, other=0.0)
    b = w
    if b_ptr is not None:
        b = tl.load(b_ptr + columns, mask=inside, other=0.0)
    step = tl.num_programs(0) * ROWS
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)[:, None]
    start = first.to(tl.int64) * n
    ahead = tl.load(x_ptr + start + here, mask=inside & (rows < m), other=0.0)
    r_ahead = ahead
    if r_ptr is not None:
        r_ahead = tl.load(r_ptr + start + here, mask=inside & (rows < m), other=0.0)
    for _ in range(first, m, step):
        x = ahead.to(tl.float32)
        r = r_ahead
        # The next rows are prefetched while these are reduced.
        following = start + step.to(tl.int64) * n
        mask = inside & (rows + step < m)
        ahead = tl.load(x_ptr + following + here, mask=mask, other=0.0)
        if r_ptr is not None:
            r_ahead = tl.load(r_ptr + following + here, mask=mask, other=0.0)
            s = (x + r.to(tl.float32)).to(s_ptr.dtype.element_ty)
            tl.store(s_ptr + start + here, s, mask=inside & (rows < m))
            x = s.to(tl.float32)
        y = _weighted(_scaled(x, inside, n, eps, 1, CENTRED), w, b, b_ptr is not None)
        tl.store(y_ptr + start + here, y.to(y_ptr.dtype.element_ty), mask=inside & (rows < m))
        start = following
        rows += step


@triton.jit
def pipelined_kernel(
    x_ptr,
    r_ptr,
    w_ptr,
    b_ptr,
    s_ptr,
    y_ptr,
    m,
    n,
    eps,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
    CENTRED: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    length = tl.full((), n, tl.int64)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0)
    b = w
    if b_ptr is not None:
        b = tl.load(b_ptr + columns, mask=mask, other=0.0)
    # The next rows are prefetched into shared memory, because registers cannot hold another long row.
    for row in tl.range(tl.program_id(0), m, tl.num_programs(0), num_stages=STAGES):
        start = row * length
        x = tl.load(x_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
        if r_ptr is not None:
            r = tl.load(r_ptr + start + columns, mask=mask, other=0.0)
            s = (x + r.to(tl.float32)).to(s_ptr.dtype.element_ty)
            tl.store(s_ptr + start + columns, s, mask=mask)
            x = s.to(tl.float32)
        y = _weighted(_scaled(x, mask, n, eps, 0, CENTRED), w, b, b_ptr is not None)
        tl.store(y_ptr + start + columns, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def chunked_persistent_kernel(
    x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, m, n, eps, CHUNK: tl.constexpr, CENTRED: tl.constexpr
):
    start = tl.program_id(0).to(tl.int64) * n
    for _ in range(tl.program_id(0), m, tl.num_programs(0)):
        _normalise_in_chunks(x_ptr, r_ptr, w_ptr, b_ptr, s_ptr, y_ptr, start, n, eps, CHUNK, 3, CENTRED)
        start += tl.num_programs(0).to(tl.int64) * n


def warps_for(tile_bytes: int) -> int:
    """Warps of a program: 32 bytes a thread, 64 rather than more than 16 warps (rows of 32 KiB: 4189 against 3005 GB/s).

    >>> [warps_for(b) for b in (16, 2048, 16384, 32768, 65536)]
    [1, 2, 16, 16, 32]
    """
    warps = max(1, min(32, tile_bytes // (32 * BYTES_PER_THREAD)))
    return 16 if tile_bytes <= 32 * 1024 and warps > 16 else warps


def rows_a_program(row_bytes: int) -> int:
    """Rows that a persistent program processes at once: several short ones, so that 128 threads have 32 bytes each.

    >>> [rows_a_program(b) for b in (256, 2048, 8192)]
    [16, 2, 1]
    """
    return max(1, 128 * BYTES_PER_THREAD // row_bytes)


@dataclass(frozen=True, slots=True)
class NormInputs:
    """The inputs of a kernel: `r_MN` of add_rmsnorm only, `b_N` of layernorm only."""

    x_MN: torch.Tensor
    w_N: torch.Tensor
    r_MN: torch.Tensor | None = None
    b_N: torch.Tensor | None = None

    def outputs(self) -> tuple[torch.Tensor | None, torch.Tensor]:
        """Uninitialised s (of add_rmsnorm only) and y; raises BadField for inputs that are not contiguous."""
        tensors = {"x_MN": self.x_MN, "r_MN": self.r_MN, "w_N": self.w_N, "b_N": self.b_N}
        require_contiguous(**{name: t for name, t in tensors.items() if t is not None})
        return (None if self.r_MN is None else torch.empty_like(self.x_MN)), torch.empty_like(self.x_MN)


def bind_block_per_row(inputs: NormInputs, *, eps: float) -> Launch:
    """One program a row; raises BadField for tensors that are not contiguous."""
    s_MN, y_MN = inputs.outputs()
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    block = triton.next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    centred = inputs.b_N is not None
    pointers = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    outputs = y_MN if s_MN is None else (s_MN, y_MN)
    chunk = CHUNK_BYTES // x_MN.element_size()
    warps = warps_for(row_bytes)
    # Registers that let an SM have 2048 threads with 32 bytes of a row each, or 1024 with 64 bytes (or 32 bytes of two rows).
    registers = 32 if s_MN is None and row_bytes <= warps * 32 * BYTES_PER_THREAD else 64

    def in_registers() -> torch.Tensor | tuple[torch.Tensor, ...]:
        row_kernel[(m,)](*pointers, n, eps, BLOCK=block, CENTRED=centred, num_warps=warps, maxnreg=registers)
        return outputs

    def in_chunks() -> torch.Tensor | tuple[torch.Tensor, ...]:
        chunked_row_kernel[(m,)](*pointers, n, eps, CHUNK=chunk, STAGES=3, CENTRED=centred, num_warps=32)
        return outputs

    return in_registers if row_bytes <= LONGEST_ROW_BYTES else in_chunks


def bind_two_passes(inputs: NormInputs, *, eps: float) -> Launch:
    """One program a row, which is read twice; raises BadField for tensors that are not contiguous."""
    s_MN, y_MN = inputs.outputs()
    m, n = inputs.x_MN.shape
    itemsize = inputs.x_MN.element_size()
    # Half a row, 16 bytes a thread, so that 2048 threads an SM have the 32 registers that they need.
    chunk = max(32 * 16 // itemsize, min(triton.next_power_of_2(n) // 2, 1024 * 16 // itemsize))
    warps = chunk * itemsize // (32 * 16)
    centred = inputs.b_N is not None
    pointers = (inputs.x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch() -> torch.Tensor | tuple[torch.Tensor, ...]:
        chunked_row_kernel[(m,)](*pointers, n, eps, CHUNK=chunk, STAGES=1, CENTRED=centred, num_warps=warps)
        return outputs

    return launch


def bind_persistent(inputs: NormInputs, *, eps: float) -> Launch:
    """As many programs as the GPU holds at once, which loop over rows; raises BadField for tensors that are not contiguous."""
    s_MN, y_MN = inputs.outputs()
    x_MN = inputs.x_MN
    m, n = x_MN.shape
    block = triton.next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    rows = rows_a_program(row_bytes)
    warps = warps_for(rows * row_bytes)
    processors = multiprocessors(x_MN.device)
    programs = min(triton.cdiv(m, rows), processors * (32 // warps))
    centred = inputs.b_N is not None
    two = centred or s_MN is not None
    pointers = (x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    outputs = y_MN if s_MN is None else (s_MN, y_MN)
    chunk = CHUNK_BYTES // x_MN.element_size()
    # 64 KiB of shared memory a program for the rows in flight.
    stages = 2 if row_bytes * (2 if s_MN is not None else 1) > 32 * 1024 else 3

    def prefetched() -> torch.Tensor | tuple[torch.Tensor, ...]:
        persistent_kernel[(programs,)](*pointers, m, n, eps, ROWS=rows, BLOCK=block, CENTRED=centred, num_warps=warps)
        return outputs

    def pipelined() -> torch.Tensor | tuple[torch.Tensor, ...]:
        pipelined_kernel[(programs,)](
            *pointers, m, n, eps, BLOCK=block, STAGES=stages, CENTRED=centred, num_warps=warps
        )
        return outputs

    def in_chunks() -> torch.Tensor | tuple[torch.Tensor, ...]:
        grid = (min(m, processors),)
        chunked_persistent_kernel[grid](*pointers, m, n, eps, CHUNK=chunk, CENTRED=centred, num_warps=32)
        return outputs

    if row_bytes <= LONGEST_PREFETCHED_BYTES // (2 if two else 1):
        return prefetched
    return pipelined if row_bytes <= LONGEST_ROW_BYTES else in_chunks
