"""Triton kernel of `matmul`: grouped tiles, fp32 accumulation."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES
from kernelviz.ops.kernels.limits import limits as limits_of

GROUP = 8
"""Rows of tiles that neighbouring programs share."""


@triton.jit
def grouped_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    GROUP: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    # Programs that run together take GROUP rows of tiles by a few columns, so that both factors are in L2.
    program = tl.program_id(0)
    across = tl.cdiv(n, BN)
    group = program // (GROUP * across)
    rows_in_group = min(tl.cdiv(m, BM) - group * GROUP, GROUP)
    tile_m = group * GROUP + (program % (GROUP * across)) % rows_in_group
    tile_n = (program % (GROUP * across)) // rows_in_group

    rows = tile_m * BM + tl.arange(0, BM)
    columns = tile_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, BK)
    # 64-bit where a row number is multiplied by a row length: M * K, K * N and M * N pass 2^31.
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth.to(tl.int64)[:, None] * n + columns[None, :]
    b_step = tl.full((), BK, tl.int64) * n
    acc = tl.zeros((BM, BN), tl.float32)
    for start in range(0, k, BK):
        # Constants of the compilation where a size is a multiple of its tile: then no mask is left.
        left = EVEN_K | (start + depth < k)
        a = tl.load(a_ptrs, mask=(EVEN_M | (rows < m))[:, None] & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (EVEN_N | (columns < n))[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BK
        b_ptrs += b_step
    c_ptrs = c_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


@dataclass(frozen=True, kw_only=True, slots=True)
class Tile:
    """What one program computes and how: BM × BN of the product in steps of BK."""

    bm: int
    bn: int
    bk: int
    warps: int
    stages: int

    def grid(self, m: int, n: int) -> int:
        return -(-m // self.bm) * -(-n // self.bn)

    def shared_bytes(self, itemsize_bytes: int) -> int:
        """Shared memory of the pipeline: a buffer for either factor in each stage."""
        return (self.bm + self.bn) * self.bk * itemsize_bytes * self.stages


# Largest first. The last of each is for fewer than 33 rows, where the time is that of reading B.
HALF = (
    Tile(bm=128, bn=256, bk=64, warps=8, stages=3),
    Tile(bm=128, bn=128, bk=64, warps=8, stages=4),
    Tile(bm=64, bn=128, bk=64, warps=4, stages=4),
    Tile(bm=64, bn=64, bk=64, warps=4, stages=4),
)
HALF_SKINNY = Tile(bm=16, bn=64, bk=128, warps=4, stages=4)
TF32 = (
    Tile(bm=128, bn=128, bk=32, warps=8, stages=3),
    Tile(bm=64, bn=128, bk=32, warps=4, stages=4),
    Tile(bm=64, bn=64, bk=32, warps=4, stages=4),
)
TF32_SKINNY = Tile(bm=16, bn=64, bk=64, warps=4, stages=4)
# FMA units, no tensor core: a thread holds its part of the tile in registers, and a deep step only costs more of them.
IEEE = (
    Tile(bm=128, bn=128, bk=16, warps=8, stages=3),
    Tile(bm=64, bn=64, bk=16, warps=4, stages=3),
)
IEEE_SKINNY = Tile(bm=16, bn=64, bk=32, warps=4, stages=3)


def tile_for(
    m: int, n: int, itemsize_bytes: int, precision: str, processors: int = 132, shared_bytes: int = 232_448
) -> Tile:
    """The largest tile that fits shared memory and still gives every SM one, else the smallest; a flat one for few rows.

    The defaults are an H200's. Smaller GPUs have 99 KiB of shared memory for a program.

    >>> tile_for(8192, 8192, 2, "ieee").bn, tile_for(512, 512, 2, "ieee").bn, tile_for(1, 14336, 2, "ieee").bm
    (256, 64, 16)
    >>> tile_for(8192, 8192, 2, "ieee", processors=128, shared_bytes=101_376).bn
    128
    """
    tiles: tuple[Tile, ...]
    if itemsize_bytes == 2:
        tiles, skinny = HALF, HALF_SKINNY
    elif precision == "tf32":
        tiles, skinny = TF32, TF32_SKINNY
    else:
        tiles, skinny = IEEE, IEEE_SKINNY
    if m <= 32:
        return skinny
    fitting = [t for t in tiles if t.bm <= max(64, m) and t.shared_bytes(itemsize_bytes) <= shared_bytes]
    return next((t for t in fitting if t.grid(m, n) >= processors), fitting[-1])


def limits(device: torch.device) -> tuple[int, int]:
    """SMs, and bytes of shared memory that one program may have; an H200's for Triton's interpreter, which has neither."""
    return limits_of(device, without_gpu=MOST_SHARED_BYTES)


def bind_grouped(a_MK: torch.Tensor, b_KN: torch.Tensor, *, compute: str | None) -> Launch:
    """Launch of `grouped_kernel` over contiguous matrices (M, K) and (K, N). `compute`: ``tf32``, ``ieee`` or None.

    Raises BadField for matrices that are not contiguous.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    precision = compute or "ieee"
    tile = tile_for(m, n, a_MK.element_size(), precision, *limits(a_MK.device))
    grid = (tile.grid(m, n),)
    even = {"EVEN_M": m % tile.bm == 0, "EVEN_N": n % tile.bn == 0, "EVEN_K": k % tile.bk == 0}

    def launch() -> torch.Tensor:
        grouped_kernel[grid](
            a_MK,
            b_KN,
            c_MN,
            m,
            n,
            k,
            BM=tile.bm,
            BN=tile.bn,
            BK=tile.bk,
            GROUP=GROUP,
            PRECISION=precision,
            num_warps=tile.warps,
            num_stages=tile.stages,
            **even,
        )
        return c_MN

    return launch
