"""Triton kernel of `matmul` as a guide to GPU operations publishes it (source 3): no grouping, fp16 results, 32-bit offsets."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

MOST_ELEMENTS = 2**31 - 1
"""Of one matrix: the kernel multiplies row numbers by row lengths in 32 bits, and would access other memory beyond that."""


@triton.jit
def published_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    # Neighbouring programs compute neighbouring tiles of one row of tiles. With many columns they read all of B together.
    across = tl.cdiv(n, BN)
    tile_m = tl.program_id(0) // across
    tile_n = tl.program_id(0) % across
    # Rows and columns beyond the end are read as those at the beginning, and their results are not stored.
    rows = (tile_m * BM + tl.arange(0, BM)) % m
    columns = (tile_n * BN + tl.arange(0, BN)) % n
    depth = tl.arange(0, BK)
    a_ptrs = a_ptr + rows[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * n + columns[None, :]
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(tl.cdiv(k, BK)):
        left = depth < k - step * BK
        # As published but for `other`, without which Triton leaves open what is read beyond K.
        a = tl.load(a_ptrs, mask=left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None], other=0.0)
        acc += tl.dot(a, b)
        a_ptrs += BK
        b_ptrs += BK * n
    # fp16 whatever the format of the result is.
    c = acc.to(tl.float16)
    c_rows = tile_m * BM + tl.arange(0, BM)
    c_columns = tile_n * BN + tl.arange(0, BN)
    c_ptrs = c_ptr + c_rows[:, None] * n + c_columns[None, :]
    tl.store(c_ptrs, c.to(c_ptr.dtype.element_ty), mask=(c_rows < m)[:, None] & (c_columns < n)[None, :])


def side_by_size(m: int, n: int) -> int:
    """Rows and columns of a tile, which has a depth of 32, by the size of the product, as published.

    >>> side_by_size(4096, 4096), side_by_size(1024, 4096), side_by_size(64, 4096)
    (128, 64, 32)
    """
    if m >= 2048 and n >= 2048:
        return 128
    return 64 if m >= 512 and n >= 512 else 32


def bind_published(a_MK: torch.Tensor, b_KN: torch.Tensor, *, side: int | None) -> Launch:
    """Launch of `published_kernel` over contiguous matrices (M, K) and (K, N), with Triton's usual 4 warps and 3 stages.

    `side`: rows and columns of a tile; None: by size. Raises BadField for matrices that are not contiguous, and for more
    elements than 32 bits count.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    for axis, rows, columns in (("m", m, k), ("k", k, n), ("n", m, n)):
        if rows * columns > MOST_ELEMENTS:
            raise BadField(
                f"size {axis}",
                {"m": m, "k": k, "n": n}[axis],
                f"this kernel counts the elements of a matrix in 32 bits, and {rows} × {columns} are more",
            )
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    tile = side or side_by_size(m, n)
    grid = (-(-m // tile) * -(-n // tile),)

    def launch() -> torch.Tensor:
        published_kernel[grid](a_MK, b_KN, c_MN, m, n, k, BM=tile, BN=tile, BK=32)
        return c_MN

    return launch
