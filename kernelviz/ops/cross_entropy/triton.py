"""Triton kernels of `cross_entropy`, of its gradient, and of both at once."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.layout import require_contiguous

LONGEST_ROW_BYTES = 64 * 1024
"""The longest row (padded to a power of two) that one program of 1024 threads keeps in registers."""
BACKWARD_BYTES = 8 * 1024
"""Of a row for one program of the backward pass: 128 threads with 64 bytes each."""
LOWEST = tl.constexpr(-3.4028234663852886e38)
"""The lowest finite fp32: a running maximum that starts at -inf would give -inf - -inf = NaN on a masked entry."""


@triton.jit
def row_kernel(x_ptr, label_ptr, loss_ptr, dx_ptr, n, BLOCK: tl.constexpr, GRADIENT: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    label = tl.load(label_ptr + row)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    # 64-bit offsets: m * v passes 2^31 with a vocabulary of 128256.
    x = tl.load(x_ptr + row * n + columns, mask=mask, other=-float("inf")).to(tl.float32)
    chosen = tl.load(x_ptr + row * n + label).to(tl.float32)
    top = tl.max(x, axis=0)
    e = tl.exp(x - top)
    total = tl.sum(e, axis=0)
    tl.store(loss_ptr + row, (tl.log(total) + (top - chosen)).to(loss_ptr.dtype.element_ty))
    if GRADIENT:
        dx = e * (1.0 / total) - tl.where(columns == label, 1.0, 0.0)
        tl.store(dx_ptr + row * n + columns, dx.to(dx_ptr.dtype.element_ty), mask=mask)


@triton.jit
def online_kernel(
    x_ptr,
    label_ptr,
    loss_ptr,
    sum_ptr,
    dx_ptr,
    n,
    CHUNK: tl.constexpr,
    VECTOR: tl.constexpr,
    STAGES: tl.constexpr,
    SAVES: tl.constexpr,
    GRADIENT: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    start = row * n
    label = tl.load(label_ptr + row)
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
    for i in tl.range(0, chunks, num_stages=STAGES):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + begin + at, mask=at < body, other=-float("inf")).to(tl.float32)
        # One exponential, not two: of a new maximum and the old one, the smaller is scaled by exp(-|difference|).
        rise = x - most
        e = tl.exp(-tl.abs(rise))
        total = tl.where(rise > 0, total * e + 1.0, total + e)
        most = tl.maximum(most, x)
    chosen = tl.load(x_ptr + start + label).to(tl.float32)
    top = tl.max(most, axis=0)
    if VECTOR > 0:
        top = tl.maximum(top, tl.max(edge, axis=0))
    whole = tl.sum(total * tl.exp(most - top), axis=0)
    if VECTOR > 0:
        whole += tl.sum(tl.exp(edge - top), axis=0)
    tl.store(loss_ptr + row, (tl.log(whole) + (top - chosen)).to(loss_ptr.dtype.element_ty))
    if SAVES:
        tl.store(sum_ptr + row, tl.log(whole) + top)
    if GRADIENT:
        scale = 1.0 / whole
        aligned_from = begin - start
        # In reverse order, because the chunks read last are the most likely to be in L2 still.
        for i in range(0, chunks):
            at = (chunks - 1 - i) * CHUNK + columns
            x = tl.load(x_ptr + begin + at, mask=at < body, other=0.0).to(tl.float32)
            dx = tl.exp(x - top) * scale - tl.where(at + aligned_from == label, 1.0, 0.0)
            tl.store(dx_ptr + begin + at, dx.to(dx_ptr.dtype.element_ty), mask=at < body)
        if VECTOR > 0:
            dx = tl.exp(edge - top) * scale - tl.where(edge_columns == label, 1.0, 0.0)
            tl.store(dx_ptr + start + edge_columns, dx.to(dx_ptr.dtype.element_ty), mask=is_edge)


@triton.jit
def backward_kernel(x_ptr, label_ptr, sum_ptr, dloss_ptr, dx_ptr, n, pieces, BLOCK: tl.constexpr):
    row = (tl.program_id(0) // pieces).to(tl.int64)
    columns = tl.program_id(0) % pieces * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=0.0).to(tl.float32)
    p = tl.exp(x - tl.load(sum_ptr + row)) - tl.where(columns == tl.load(label_ptr + row), 1.0, 0.0)
    dx = p * tl.load(dloss_ptr + row).to(tl.float32)
    tl.store(dx_ptr + row * n + columns, dx.to(dx_ptr.dtype.element_ty), mask=columns < n)


def next_power_of_2(n: int) -> int:
    """
    >>> [next_power_of_2(n) for n in (1, 3, 1024)]
    [1, 4, 1024]
    """
    return 1 << (n - 1).bit_length()


def bind_online(logits_MV: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """The losses; one program per row of contiguous logits (M, V), in chunks. Raises BadField if not contiguous."""
    return _bind_online(logits_MV, labels_M, None, gradient=False)


def bind_block_per_row(logits_MV: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """The losses; one program per row of contiguous logits (M, V), in one piece if it fits. Raises BadField if not contiguous."""
    return _bind_row(logits_MV, labels_M, gradient=False)


def bind_online_with_grad(logits_MV: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """The losses and their gradient; each row of contiguous logits (M, V) is read twice. Raises BadField if not contiguous."""
    return _bind_online(logits_MV, labels_M, None, gradient=True)


def bind_block_per_row_with_grad(logits_MV: torch.Tensor, labels_M: torch.Tensor) -> Launch:
    """The losses and their gradient; a row of contiguous logits (M, V) is read once if it fits. Raises as above."""
    return _bind_row(logits_MV, labels_M, gradient=True)


def bind_backward(logits_MV: torch.Tensor, labels_M: torch.Tensor, dloss_M: torch.Tensor) -> Staged:
    """The gradient of the logits, after a forward pass that writes ln Σ exp. Raises BadField if not contiguous."""
    require_contiguous(logits_MV=logits_MV, labels_M=labels_M, dloss_M=dloss_M)
    m, n = logits_MV.shape
    sums_M = torch.empty(m, dtype=torch.float32, device=logits_MV.device)
    forward = _bind_online(logits_MV, labels_M, sums_M, gradient=False)
    dx_MV = torch.empty_like(logits_MV)
    block = min(next_power_of_2(n), BACKWARD_BYTES // logits_MV.element_size())
    pieces = triton.cdiv(n, block)

    def launch() -> torch.Tensor:
        backward_kernel[(m * pieces,)](logits_MV, labels_M, sums_M, dloss_M, dx_MV, n, pieces, BLOCK=block)
        return dx_MV

    return Staged(forward, launch)


def _bind_online(
    logits_MV: torch.Tensor, labels_M: torch.Tensor, sums_M: torch.Tensor | None, *, gradient: bool
) -> Launch:
    require_contiguous(logits_MV=logits_MV, labels_M=labels_M)
    m, n = logits_MV.shape
    itemsize, vector = logits_MV.element_size(), 16 // logits_MV.element_size()
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV) if gradient else None
    # 8 elements a thread: with 16, their maxima and sums leave too few registers for 1024 threads an SM.
    chunk = min(next_power_of_2(n), 4096)
    apart = n > chunk and n % vector != 0 and logits_MV.data_ptr() % 16 == 0
    options = {
        "CHUNK": chunk,
        "VECTOR": vector if apart else 0,
        "STAGES": 1 + 8 // itemsize,
        "SAVES": sums_M is not None,
        "GRADIENT": gradient,
        "num_warps": max(1, chunk // 256),
    }

    def launch() -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        online_kernel[(m,)](logits_MV, labels_M, loss_M, sums_M, dx_MV, n, **options)
        return loss_M if dx_MV is None else (loss_M, dx_MV)

    return launch


def _bind_row(logits_MV: torch.Tensor, labels_M: torch.Tensor, *, gradient: bool) -> Launch:
    m, n = logits_MV.shape
    block = next_power_of_2(n)
    row_bytes = block * logits_MV.element_size()
    if row_bytes > LONGEST_ROW_BYTES:
        return _bind_online(logits_MV, labels_M, None, gradient=gradient)
    require_contiguous(logits_MV=logits_MV, labels_M=labels_M)
    loss_M = torch.empty(m, dtype=logits_MV.dtype, device=logits_MV.device)
    dx_MV = torch.empty_like(logits_MV) if gradient else None
    # 32 bytes of the row a thread.
    warps = max(1, min(32, row_bytes // 1024))

    def launch() -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
        row_kernel[(m,)](logits_MV, labels_M, loss_M, dx_MV, n, BLOCK=block, GRADIENT=gradient, num_warps=warps)
        return loss_M if dx_MV is None else (loss_M, dx_MV)

    return launch
