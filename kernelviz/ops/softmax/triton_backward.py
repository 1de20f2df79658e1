"""Triton kernels of the backward pass of `softmax`, dx = y (dy - Σ y dy), after a forward pass that writes y."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.softmax.triton import bind_block_per_row as bind_forward
from kernelviz.ops.softmax.triton import next_power_of_2, warps_for

LONGEST_ROW_BYTES = 32 * 1024
"""The longest row (padded to a power of two) of which a program of 1024 threads keeps y and dy in registers."""
CHUNK_BYTES = 16 * 1024
"""Of longer rows, by 512 threads: 32 bytes of y and 32 of dy each."""


@triton.jit
def backward_row_kernel(y_ptr, dy_ptr, dx_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    y = tl.load(y_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
    dy = tl.load(dy_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
    dx = y * (dy - tl.sum(y * dy, axis=0))
    tl.store(dx_ptr + start + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def backward_chunks_kernel(y_ptr, dy_ptr, dx_ptr, n, CHUNK: tl.constexpr, STAGES: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, CHUNK)
    products = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(n, CHUNK)
    for i in tl.range(0, chunks, num_stages=STAGES):
        at = i * CHUNK + columns
        y = tl.load(y_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        dy = tl.load(dy_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        products += y * dy
    mean = tl.sum(products, axis=0)
    # In reverse order, because the chunks read last are the most likely to be in L2 still.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        y = tl.load(y_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        dy = tl.load(dy_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        tl.store(dx_ptr + start + at, (y * (dy - mean)).to(dx_ptr.dtype.element_ty), mask=at < n)


def bind_chunks(x_MN: torch.Tensor, dy_MN: torch.Tensor) -> Staged:
    """One program a row of contiguous matrices (M, N), which it reads twice; raises BadField if not contiguous."""
    forward, y_MN, dx_MN = _after_forward(x_MN, dy_MN)
    m, n = x_MN.shape
    chunk = min(next_power_of_2(n), CHUNK_BYTES // x_MN.element_size())
    warps = max(1, min(16, chunk * x_MN.element_size() // 1024))

    def launch() -> torch.Tensor:
        backward_chunks_kernel[(m,)](y_MN, dy_MN, dx_MN, n, CHUNK=chunk, STAGES=3, num_warps=warps)
        return dx_MN

    return Staged(forward, launch)


def bind_block_per_row(x_MN: torch.Tensor, dy_MN: torch.Tensor) -> Staged:
    """One program a row of contiguous matrices (M, N), read once where it fits; raises BadField if not contiguous."""
    m, n = x_MN.shape
    block = next_power_of_2(n)
    row_bytes = block * x_MN.element_size()
    if row_bytes > LONGEST_ROW_BYTES:
        return bind_chunks(x_MN, dy_MN)
    forward, y_MN, dx_MN = _after_forward(x_MN, dy_MN)
    warps = warps_for(2 * row_bytes)

    def launch() -> torch.Tensor:
        backward_row_kernel[(m,)](y_MN, dy_MN, dx_MN, n, BLOCK=block, num_warps=warps)
        return dx_MN

    return Staged(forward, launch)


def _after_forward(x_MN: torch.Tensor, dy_MN: torch.Tensor) -> tuple[Launch, torch.Tensor, torch.Tensor]:
    """A forward pass, the y that each call of it writes anew, and room for dx."""
    require_contiguous(x_MN=x_MN, dy_MN=dy_MN)
    forward = bind_forward(x_MN)
    y_MN = forward()
    assert isinstance(y_MN, torch.Tensor)
    return forward, y_MN, torch.empty_like(x_MN)
