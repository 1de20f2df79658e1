"""Triton kernel of `matmul` with a tile by size and parts of K, for shapes that fit neither large tiles nor TMA."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.matmul.tile_choice import SizedTile, choose
from kernelviz.ops.matmul.triton import limits


@triton.jit
def tile_by_size_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    sums_ptr,
    arrived_ptr,
    m,
    n,
    k,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    PARTS: tl.constexpr,
    EVEN_M: tl.constexpr,
    EVEN_N: tl.constexpr,
    EVEN_K: tl.constexpr,
    PRECISION: tl.constexpr,
):
    # Neighbouring programs take the parts of one tile, then the next tile of the same columns, so that they share B.
    program = tl.program_id(0)
    part = program % PARTS
    tile = program // PARTS
    tiles_m = tl.cdiv(m, BM)
    rows = tile % tiles_m * BM + tl.arange(0, BM)
    columns = tile // tiles_m * BN + tl.arange(0, BN)
    steps = tl.cdiv(k, BK)
    first = steps * part // PARTS
    end = steps * (part + 1) // PARTS
    depth = first * BK + tl.arange(0, BK)
    # 64-bit where a row number is multiplied by a row length: M * K, K * N and M * N pass 2^31.
    a_ptrs = a_ptr + rows.to(tl.int64)[:, None] * k + depth[None, :]
    b_ptrs = b_ptr + depth.to(tl.int64)[:, None] * n + columns[None, :]
    b_step = tl.full((), BK, tl.int64) * n
    acc = tl.zeros((BM, BN), tl.float32)
    for step in range(first, end):
        left = EVEN_K | (step * BK + tl.arange(0, BK) < k)
        a = tl.load(a_ptrs, mask=(EVEN_M | (rows < m))[:, None] & left[None, :], other=0.0)
        b = tl.load(b_ptrs, mask=left[:, None] & (EVEN_N | (columns < n))[None, :], other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BK
        b_ptrs += b_step
    last = True
    if PARTS > 1:
        # Each part stores its sums; the program that comes last adds up all of them, always in the same order.
        within = tl.arange(0, BM)[:, None] * BN + tl.arange(0, BN)[None, :]
        sums_ptrs = sums_ptr + tile.to(tl.int64) * (PARTS * BM * BN) + within
        tl.store(sums_ptrs + part * (BM * BN), acc)
        tl.debug_barrier()  # the whole program has stored before one thread of it says so
        last = tl.atomic_add(arrived_ptr + tile, 1, sem="acq_rel") == PARTS - 1
        if last:
            acc = tl.zeros((BM, BN), tl.float32)
            for other in range(PARTS):
                acc += tl.load(sums_ptrs + other * (BM * BN), cache_modifier=".cg")
            tl.store(arrived_ptr + tile, 0)  # for the next launch
    if last:
        c_ptrs = c_ptr + rows.to(tl.int64)[:, None] * n + columns[None, :]
        tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=(rows < m)[:, None] & (columns < n)[None, :])


def bind_tile_by_size(a_MK: torch.Tensor, b_KN: torch.Tensor, *, compute: str | None, tile: SizedTile | None) -> Launch:
    """Launch of `tile_by_size_kernel` over contiguous matrices (M, K) and (K, N). `compute`: ``tf32``, ``ieee`` or None; `tile`:
    None is the choice by size.

    Raises BadField for matrices that are not contiguous.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    precision = compute or "ieee"
    processors, _ = limits(a_MK.device)
    chosen = tile or choose(m, n, k, processors, cores=a_MK.element_size() == 2 or precision == "tf32")
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    tiles = -(-m // chosen.bm) * -(-n // chosen.bn)
    split = chosen.parts > 1
    sums = torch.empty(tiles * chosen.parts * chosen.bm * chosen.bn if split else 1, device=a_MK.device)
    arrived = torch.zeros(tiles if split else 1, dtype=torch.int32, device=a_MK.device)
    even = {"EVEN_M": m % chosen.bm == 0, "EVEN_N": n % chosen.bn == 0, "EVEN_K": k % chosen.bk == 0}
    grid = (tiles * chosen.parts,)

    def launch() -> torch.Tensor:
        tile_by_size_kernel[grid](
            a_MK,
            b_KN,
            c_MN,
            sums,
            arrived,
            m,
            n,
            k,
            BM=chosen.bm,
            BN=chosen.bn,
            BK=chosen.bk,
            PARTS=chosen.parts,
            PRECISION=precision,
            num_warps=chosen.warps,
            num_stages=chosen.stages,
            **even,
        )
        return c_MN

    return launch
