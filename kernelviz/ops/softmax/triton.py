"""Triton kernels of `softmax`: a row in registers where it fits, in chunks where it does not.

In all of them a row that holds nothing but -inf gives NaN, as torch's does, and single entries of -inf give 0.
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
"""Of a row: two 16-byte loads a thread are in flight at once, and 1024 threads an SM still have 64 registers each."""
LONGEST_ROW_BYTES = 64 * 1024
"""The longest row (padded to a power of two) that one program of 1024 threads keeps in registers."""
LONGEST_PREFETCHED_BYTES = 16 * 1024
"""The longest row beside which the next one is kept in registers, too; from here to 64 KiB it waits in shared memory."""
LONGEST_SHARED_BYTES = 128 * 1024
"""Rows of up to this many bytes are taken two an SM, longer ones one an SM, so that the rows in flight (at most 33 MB for
rows of 256 KiB on an H200) stay in L2 for their second reading."""
LOWEST = tl.constexpr(-3.4028234663852886e38)
"""The lowest finite fp32: a running maximum that starts at -inf would give -inf - -inf = NaN on a masked entry."""


@triton.jit
def row_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + start + columns, mask=mask, other=-float("inf")).to(tl.float32)
    # The maximum is subtracted first and not folded into the exponent: that would lose the difference of two large logits.
    e = tl.exp(x - tl.max(x, axis=0))
    # One division a row, not one an element: 8 instructions each.
    y = e * (1.0 / tl.sum(e, axis=0))
    tl.store(out_ptr + start + columns, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def three_pass_kernel(x_ptr, out_ptr, n, CHUNK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, CHUNK)
    most = tl.full((CHUNK,), LOWEST, tl.float32)
    for first in range(0, n, CHUNK):
        at = first + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=-float("inf")).to(tl.float32)
        most = tl.maximum(most, x)
    top = tl.max(most, axis=0)
    total = tl.zeros((CHUNK,), tl.float32)
    for first in range(0, n, CHUNK):
        at = first + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=-float("inf")).to(tl.float32)
        total += tl.exp(x - top)
    scale = 1.0 / tl.sum(total, axis=0)
    for first in range(0, n, CHUNK):
        at = first + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(out_ptr + start + at, (tl.exp(x - top) * scale).to(out_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def _softmax_in_chunks(x_ptr, out_ptr, start, n, CHUNK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr):
    begin, body = start, n
    if VECTOR > 0:
        # Rows whose length is no multiple of a 16-byte vector of VECTOR elements start anywhere in one, and would be read by 2
        # or 4 bytes. So the few elements before the first whole vector and after the last are processed separately.
        head = ((VECTOR - start % VECTOR) % VECTOR).to(tl.int32)
        begin = tl.multiple_of(start + head, VECTOR)
        body = tl.multiple_of((n - head) // VECTOR * VECTOR, VECTOR)
        lanes = tl.arange(0, 2 * VECTOR)
        edge_columns = tl.where(lanes < VECTOR, lanes, body + head + lanes - VECTOR)
        is_edge = tl.where(lanes < VECTOR, lanes < head, edge_columns < n)
        edge = tl.load(x_ptr + start + edge_columns, mask=is_edge, other=-float("inf")).to(tl.float32)
    columns = tl.arange(0, CHUNK)
    # A maximum and a sum for each column of the chunk: no thread waits for another before the row is over.
    most = tl.full((CHUNK,), LOWEST, tl.float32)
    total = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(body, CHUNK)
    # Several chunks are in flight at once: with one, each would wait for the memory's full latency.
    for i in tl.range(0, chunks, num_stages=STAGES):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + begin + at, mask=at < body, other=-float("inf"), eviction_policy="evict_last")
        # One exponential, not two: of a new maximum and the old one, the smaller is scaled by exp(-|difference|).
        rise = x.to(tl.float32) - most
        e = tl.exp(-tl.abs(rise))
        total = tl.where(rise > 0, total * e + 1.0, total + e)
        most = tl.maximum(most, x.to(tl.float32))
    top = tl.max(most, axis=0)
    if VECTOR > 0:
        top = tl.maximum(top, tl.max(edge, axis=0))
    whole = tl.sum(total * tl.exp(most - top), axis=0)
    if VECTOR > 0:
        whole += tl.sum(tl.exp(edge - top), axis=0)
    scale = 1.0 / whole
    # In reverse order, because the chunks read last are the most likely to be in L1 and L2 still.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        x = tl.load(x_ptr + begin + at, mask=at < body, other=0.0, eviction_policy="evict_first").to(tl.float32)
        tl.store(out_ptr + begin + at, (tl.exp(x - top) * scale).to(out_ptr.dtype.element_ty), mask=at < body)
    if VECTOR > 0:
        y = (tl.exp(edge - top) * scale).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + start + edge_columns, y, mask=is_edge)


@triton.jit
def online_kernel(x_ptr, out_ptr, n, CHUNK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr):
    _softmax_in_chunks(x_ptr, out_ptr, tl.program_id(0).to(tl.int64) * n, n, CHUNK, VECTOR, STAGES)


@triton.jit
def persistent_kernel(x_ptr, out_ptr, m, n, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < n
    here = tl.arange(0, ROWS)[:, None] * n + columns
    step = tl.num_programs(0) * ROWS
    first = tl.program_id(0) * ROWS
    rows = first + tl.arange(0, ROWS)[:, None]
    start = first.to(tl.int64) * n
    ahead = tl.load(x_ptr + start + here, mask=inside & (rows < m), other=-float("inf"))
    for _ in range(first, m, step):
        x = ahead.to(tl.float32)
        # The next rows are in flight while these are reduced.
        following = start + step.to(tl.int64) * n
        ahead = tl.load(x_ptr + following + here, mask=inside & (rows + step < m), other=-float("inf"))
        e = tl.exp(x - tl.max(x, axis=1, keep_dims=True))
        y = (e * (1.0 / tl.sum(e, axis=1, keep_dims=True))).to(out_ptr.dtype.element_ty)
        tl.store(out_ptr + start + here, y, mask=inside & (rows < m))
        start = following
        rows += step


@triton.jit
def pipelined_kernel(x_ptr, out_ptr, m, n, BLOCK: tl.constexpr):
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    length = tl.full((), n, tl.int64)
    # The next two rows are prefetched into shared memory: beside a long row the registers have no room for another one.
    for row in tl.range(tl.program_id(0), m, tl.num_programs(0), num_stages=3):
        start = row * length
        x = tl.load(x_ptr + start + columns, mask=mask, other=-float("inf")).to(tl.float32)
        e = tl.exp(x - tl.max(x, axis=0))
        y = e * (1.0 / tl.sum(e, axis=0))
        tl.store(out_ptr + start + columns, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def persistent_online_kernel(x_ptr, out_ptr, m, n, CHUNK: tl.constexpr, VECTOR: tl.constexpr, STAGES: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    for _ in range(tl.program_id(0), m, tl.num_programs(0)):
        _softmax_in_chunks(x_ptr, out_ptr, start, n, CHUNK, VECTOR, STAGES)
        start += tl.num_programs(0).to(tl.int64) * n


def warps_for(tile_bytes: int) -> int:
    """Warps of a program: 32 bytes a thread, 64 rather than more than 16 warps (rows of 32 KiB: 4189 against 3005 GB/s in
    rmsnorm, which has the same traffic).

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


@dataclass(frozen=True, slots=True)
class Chunks:
    """How a row is cut: elements of a chunk, of a 16-byte vector where rows start anywhere in one (else 0), chunks in flight
    at once plus one, warps."""

    elements: int
    vector: int
    stages: int
    warps: int


def chunks_of(n: int, itemsize_bytes: int, *, aligned: bool = True) -> Chunks:
    """8 elements a thread: with 16, their maxima and sums leave too few registers for 1024 threads an SM.

    `aligned`: the matrix itself starts on 16 bytes.

    >>> chunks_of(100, 2), chunks_of(50257, 2)
    (Chunks(elements=128, vector=0, stages=5, warps=1), Chunks(elements=4096, vector=8, stages=5, warps=16))
    >>> chunks_of(128256, 4)
    Chunks(elements=8192, vector=0, stages=3, warps=32)
    """
    most_warps = 16 if n * itemsize_bytes <= LONGEST_SHARED_BYTES else 32
    elements = min(next_power_of_2(n), most_warps * 32 * 8)
    vector = 16 // itemsize_bytes
    unaligned = aligned and n > elements and n % vector != 0
    # 64 KiB of shared memory an SM for what is in flight.
    return Chunks(elements, vector if unaligned else 0, 1 + 8 // itemsize_bytes, max(1, elements // 256))


def chunks_for(x_MN: torch.Tensor) -> Chunks:
    """The same for a matrix (M, N)."""
    return chunks_of(x_MN.shape[1], x_MN.element_size(), aligned=x_MN.data_ptr() % 16 == 0)


def next_power_of_2(n: int) -> int:
    """
    >>> [next_power_of_2(n) for n in (1, 3, 1024)]
    [1, 4, 1024]
    """
    return 1 << (n - 1).bit_length()


def bind_online(x_MN: torch.Tensor) -> Launch:
    """One program a row of a contiguous matrix (M, N), which it reads twice; raises BadField if not contiguous."""
    require_contiguous(x_MN=x_MN)
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    cut = chunks_for(x_MN)

    def launch() -> torch.Tensor:
        online_kernel[(m,)](
            x_MN, out_MN, n, CHUNK=cut.elements, VECTOR=cut.vector, STAGES=cut.stages, num_warps=cut.warps
        )
        return out_MN

    return launch


def bind_three_pass(x_MN: torch.Tensor) -> Launch:
    """One program a row of a contiguous matrix (M, N), which it reads three times; raises BadField if not contiguous."""
    require_contiguous(x_MN=x_MN)
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    cut = chunks_for(x_MN)

    def launch() -> torch.Tensor:
        three_pass_kernel[(m,)](x_MN, out_MN, n, CHUNK=cut.elements, num_warps=cut.warps)
        return out_MN

    return launch


def bind_block_per_row(x_MN: torch.Tensor) -> Launch:
    """One program a row of a contiguous matrix (M, N); raises BadField if not contiguous."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    block = next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    if row_bytes > LONGEST_ROW_BYTES:
        return bind_online(x_MN)
    out_MN = torch.empty_like(x_MN)
    warps = warps_for(row_bytes)

    def launch() -> torch.Tensor:
        row_kernel[(m,)](x_MN, out_MN, n, BLOCK=block, num_warps=warps)
        return out_MN

    return launch


def bind_persistent(x_MN: torch.Tensor) -> Launch:
    """As many programs as the GPU holds at once, which loop over rows of a matrix; raises BadField if it is not contiguous."""
    require_contiguous(x_MN=x_MN)
    block = next_power_of_2(x_MN.shape[1])
    row_bytes = block * x_MN.element_size()
    if row_bytes > LONGEST_ROW_BYTES:
        return _bind_persistent_online(x_MN)
    return _bind_pipelined(x_MN) if row_bytes > LONGEST_PREFETCHED_BYTES else _bind_prefetched(x_MN)


def _bind_prefetched(x_MN: torch.Tensor) -> Launch:
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    block = next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    rows = rows_a_program(row_bytes)
    warps = warps_for(rows * row_bytes)
    programs = min(triton.cdiv(m, rows), multiprocessors(x_MN.device) * (32 // warps))

    def launch() -> torch.Tensor:
        persistent_kernel[(programs,)](x_MN, out_MN, m, n, ROWS=rows, BLOCK=block, num_warps=warps)
        return out_MN

    return launch


def _bind_pipelined(x_MN: torch.Tensor) -> Launch:
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    block = next_power_of_2(n)
    warps = warps_for(block * x_MN.element_size())
    programs = min(m, multiprocessors(x_MN.device) * (32 // warps))

    def launch() -> torch.Tensor:
        pipelined_kernel[(programs,)](x_MN, out_MN, m, n, BLOCK=block, num_warps=warps)
        return out_MN

    return launch


def _bind_persistent_online(x_MN: torch.Tensor) -> Launch:
    out_MN = torch.empty_like(x_MN)
    m, n = x_MN.shape
    cut = chunks_for(x_MN)
    programs = min(m, multiprocessors(x_MN.device) * (32 // cut.warps))

    def launch() -> torch.Tensor:
        persistent_online_kernel[(programs,)](
            x_MN, out_MN, m, n, CHUNK=cut.elements, VECTOR=cut.vector, STAGES=cut.stages, num_warps=cut.warps
        )
        return out_MN

    return launch
