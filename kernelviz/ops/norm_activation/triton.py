"""Triton kernels of `norm_activation`: gelu of a layer normalisation."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

BYTES_PER_THREAD = 32
"""Of a row, so that each thread has two 16-byte loads in flight."""
LONGEST_ROW_BYTES = 64 * 1024
"""The longest row (padded to a power of two) that one program of 1024 threads keeps in registers."""
CHUNK_BYTES = 16 * 1024
"""Of longer rows, by programs of 512 threads."""


@triton.jit
def _gelu(x, EXACT: tl.constexpr, NARROW: tl.constexpr):
    if EXACT:
        return 0.5 * x * (1.0 + tl.erf(x * 0.70710678118654752))
    # gelu(x) = max(x, 0) - a P(-a), a = |x|, and P(-a) = 2^Q(a), P the normal distribution: Q is the polynomial nearest to
    # log2 P(-a) on 0 <= a <= 6, of degree 6 for 16-bit formats, 8 for fp32 (as in `activation`, where its error is derived).
    a = tl.minimum(tl.abs(x), 12.0)
    if NARROW:
        q = a * 3.1882464e-05 - 7.5515453e-04
        q = q * a + 8.0197575e-03
        q = q * a - 5.3288851e-02
        q = q * a - 4.5888928e-01
        q = q * a - 1.1511536
        q = q * a - 0.9999988
    else:
        q = a * -2.7709616e-06 + 3.8608167e-05
        q = q * a - 1.8249029e-04
        q = q * a - 1.4600168e-04
        q = q * a + 7.0756334e-03
        q = q * a - 5.2505132e-02
        q = q * a - 4.5920488e-01
        q = q * a - 1.1511058
        q = q * a - 1.0
    return tl.maximum(x, 0.0, propagate_nan=tl.PropagateNan.ALL) - a * tl.exp2(q)


@triton.jit
def layernorm_gelu_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, EXACT: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: m * n passes 2^31 on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x = tl.load(x_ptr + start + columns, mask=mask, other=0.0).to(tl.float32)
    # Two passes over registers, because E[x^2] - E[x]^2 loses the variance of rows with a large mean.
    x = tl.where(mask, x - tl.sum(x, axis=0) / n, 0.0)
    x *= tl.rsqrt(tl.sum(x * x, axis=0) / n + eps)
    w = tl.load(w_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + columns, mask=mask, other=0.0).to(tl.float32)
    y = _gelu(x * w + b, EXACT, y_ptr.dtype.element_ty.primitive_bitwidth == 16)
    tl.store(y_ptr + start + columns, y.to(y_ptr.dtype.element_ty), mask=mask)


@triton.jit
def long_rows_kernel(x_ptr, w_ptr, b_ptr, y_ptr, n, eps, EXACT: tl.constexpr, CHUNK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    means = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(n, CHUNK)
    # Several chunks are in flight at once: with one, each would wait for the full latency of memory.
    for i in tl.range(0, chunks, num_stages=3):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        # Welford: the mean of the column so far, and the sum of squared distances from it.
        away = tl.where(at < n, x - means, 0.0)
        means += away * (1.0 / (i + 1))
        squares += tl.where(at < n, away * (x - means), 0.0)
    seen = tl.where(columns < n, (n - 1 - columns) // CHUNK + 1, 0).to(tl.float32)
    mean = tl.sum(means * seen, axis=0) / n
    total = tl.sum(squares, axis=0) + tl.sum((means - mean) * (means - mean) * seen, axis=0)
    scale = tl.rsqrt(total / n + eps)
    # Backwards, because the chunks read last are the most likely to be in L1 and L2.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_first").to(tl.float32)
        w = tl.load(w_ptr + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        b = tl.load(b_ptr + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        y = _gelu((x - mean) * scale * w + b, EXACT, y_ptr.dtype.element_ty.primitive_bitwidth == 16)
        tl.store(y_ptr + start + at, y.to(y_ptr.dtype.element_ty), mask=at < n)


def bind_layernorm_gelu(x_MN: torch.Tensor, w_N: torch.Tensor, b_N: torch.Tensor, *, eps: float, exact: bool) -> Launch:
    """One program a row; raises BadField for tensors that are not contiguous."""
    require_contiguous(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    y_MN = torch.empty_like(x_MN)
    block = triton.next_power_of_2(n)
    warps = max(1, min(32, block * x_MN.element_size() // (32 * BYTES_PER_THREAD)))
    chunk = CHUNK_BYTES // x_MN.element_size()
    # 64 bytes a thread and 64 registers: 1024 threads an SM have as many bytes in flight as 2048 with 32 of each.
    warps, registers = (max(1, warps // 2), 64) if warps <= 16 else (warps, 64)

    def in_registers() -> torch.Tensor:
        layernorm_gelu_kernel[(m,)](
            x_MN, w_N, b_N, y_MN, n, eps, EXACT=exact, BLOCK=block, num_warps=warps, maxnreg=registers
        )
        return y_MN

    def in_chunks() -> torch.Tensor:
        long_rows_kernel[(m,)](x_MN, w_N, b_N, y_MN, n, eps, EXACT=exact, CHUNK=chunk, num_warps=16)
        return y_MN

    return in_registers if block * x_MN.element_size() <= LONGEST_ROW_BYTES else in_chunks
