"""Triton kernels of attention: whole rows of scores at once, as published, and keys in tiles ("online softmax").

Tensors are contiguous, (batch B, positions S, heads, dimension D). Several query heads may share a key head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.attention.tile_schedule import rows_of_program
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits

SIZES = ("batches", "length", "heads", "group", "rounds")
"""Arguments that kernels are not compiled for: D alone decides how addresses are aligned."""
LOG2_E = 1.4426950408889634
PUBLISHED_QUERIES = 16
MOST_PUBLISHED_KEYS = {64: 512, 128: 256, 256: 128}
"""By head dimension: a program keeps all of them in up to 80 KiB of shared memory. Scores of twice as many would spill."""


@triton.jit(do_not_specialize=SIZES)
def published_kernel(q_ptr, k_ptr, v_ptr, o_ptr, length, heads, group, scale, D: tl.constexpr, QUERIES: tl.constexpr,
                     KEYS: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """A block of queries of a head, with all keys at once."""
    head = tl.program_id(1) % heads
    batch = (tl.program_id(1) // heads).to(tl.int64)
    key_heads = heads // group
    key_head = head // group
    rows = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES)
    keys = tl.arange(0, KEYS)
    columns = tl.arange(0, D)
    q_offsets = ((batch * length + rows[:, None]) * heads + head) * D + columns[None, :]
    k_offsets = ((batch * length + keys[:, None]) * key_heads + key_head) * D + columns[None, :]
    q = tl.load(q_ptr + q_offsets, mask=(rows < length)[:, None], other=0.0)
    k = tl.load(k_ptr + k_offsets, mask=(keys < length)[:, None], other=0.0)
    scores = tl.dot(q, k.T) * scale
    seen = (keys < length)[None, :]
    if CAUSAL:
        seen = seen & (keys[None, :] <= rows[:, None])
    scores = tl.where(seen, scores, float("-inf"))
    exponentials = tl.exp(scores - tl.max(scores, 1)[:, None])
    weights = exponentials / tl.sum(exponentials, 1)[:, None]
    v = tl.load(v_ptr + k_offsets, mask=(keys < length)[:, None], other=0.0)
    o = tl.dot(weights.to(v.dtype), v)
    tl.store(o_ptr + q_offsets, o.to(o_ptr.dtype.element_ty), mask=(rows < length)[:, None])


def bind_published(q_BSHD: torch.Tensor, k_BSHD: torch.Tensor, v_BSHD: torch.Tensor, *, causal: bool) -> Launch:
    """Launch of `published_kernel` over contiguous tensors.

    Raises BadField for tensors that are not contiguous, for other head dimensions than 64, 128 and 256, for more keys than a
    program holds, and for more heads of all batches than a grid has along y.
    """
    require_contiguous(q_BSHD=q_BSHD, k_BSHD=k_BSHD, v_BSHD=v_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    require_head_dimension(dimension)
    group = group_of(heads, k_BSHD.shape[2])
    most = MOST_PUBLISHED_KEYS[dimension]
    if length > most:
        reason = f"the published kernel holds whole rows of scores, at most {most} for heads of {dimension}; choose triton_flash"
        raise BadField("size s", length, reason)
    if batches * heads > LARGEST_GRID_Y:
        reason = f"{batches} × {heads} heads are more than a grid has along y ({LARGEST_GRID_Y}); choose triton_flash"
        raise BadField("size b", batches, reason)
    o_BSHD = torch.empty_like(q_BSHD)
    grid = (triton.cdiv(length, PUBLISHED_QUERIES), batches * heads)

    def launch() -> torch.Tensor:
        published_kernel[grid](
            q_BSHD, k_BSHD, v_BSHD, o_BSHD, length, heads, group, dimension**-0.5, D=dimension, QUERIES=PUBLISHED_QUERIES,
            KEYS=max(16, triton.next_power_of_2(length)), CAUSAL=causal, num_warps=4,
        )  # fmt: skip
        return o_BSHD

    return launch


@triton.jit
def _tile_of_program(tiles, heads, group, CAUSAL: tl.constexpr):
    """Tile of queries, head, its key head and batch (int64) of a program; if CAUSAL, the tiles with most keys first."""
    tile = tl.program_id(0) % tiles
    of_all = tl.program_id(0) // tiles
    if CAUSAL:
        tile = tiles - 1 - tile
    head = of_all % heads
    return tile, head, head // group, (of_all // heads).to(tl.int64)


@triton.jit
def _online_softmax(scores, maximum, total, scale):
    """Weights before they are divided, the maximum and the sum of each row with these scores, and what earlier sums are times."""
    greater = tl.maximum(maximum, tl.max(scores, 1) * scale)
    weights = tl.exp2(scores * scale - greater[:, None])
    factor = tl.exp2(maximum - greater)
    return weights, greater, total * factor + tl.sum(weights, 1), factor


@triton.jit
def _add_keys(o, maximum, total, q, k_start, v_start, within, first, end, rows, length, stride, scale, KEYS: tl.constexpr,
              MASKED: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Keys `first` to `end`; MASKED if some of them are behind the last one, or behind a query."""
    for key in range(first, end, KEYS):
        keys = key + tl.arange(0, KEYS)
        there = (keys < length)[:, None]
        k = tl.load(k_start + within, mask=there, other=0.0) if MASKED else tl.load(k_start + within)
        scores = tl.dot(q, k.T)
        if MASKED:
            seen = (keys < length)[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            scores = tl.where(seen, scores, float("-inf"))
        weights, maximum, total, factor = _online_softmax(scores, maximum, total, scale)
        o = o * factor[:, None]
        v = tl.load(v_start + within, mask=there, other=0.0) if MASKED else tl.load(v_start + within)
        o = tl.dot(weights.to(v.dtype), v, o)
        k_start += KEYS * stride
        v_start += KEYS * stride
    return o, maximum, total, k_start, v_start


@triton.jit(do_not_specialize=SIZES)
def flash_kernel(q_ptr, k_ptr, v_ptr, o_ptr, log_sums_ptr, length, heads, group, scale, D: tl.constexpr,
                 QUERIES: tl.constexpr, KEYS: tl.constexpr, CAUSAL: tl.constexpr, LOG_SUMS: tl.constexpr):  # fmt: skip
    """A tile of queries of a head. `scale` is log2(e) / √D."""
    tile, head, key_head, batch = _tile_of_program(tl.cdiv(length, QUERIES), heads, group, CAUSAL)
    stride = heads // group * D
    row = tile * QUERIES
    rows = row + tl.arange(0, QUERIES)
    columns = tl.arange(0, D)
    q_within = tl.arange(0, QUERIES)[:, None] * (heads * D) + columns[None, :]
    q_start = ((batch * length + row) * heads + head) * D
    q = tl.load(q_ptr + q_start + q_within, mask=(rows < length)[:, None], other=0.0)
    k_start = batch * length * stride + key_head * D
    within = tl.arange(0, KEYS)[:, None] * stride + columns[None, :]
    o = tl.zeros((QUERIES, D), tl.float32)
    maximum = tl.full((QUERIES,), float("-inf"), tl.float32)
    total = tl.zeros((QUERIES,), tl.float32)
    # Each row sees the first key, so its maximum is finite after the first tile.
    end = tl.minimum(length, row + QUERIES) if CAUSAL else length
    unmasked = (tl.minimum(length, row + 1) if CAUSAL else length) // KEYS * KEYS
    o, maximum, total, k_start, v_start = _add_keys(
        o, maximum, total, q, k_ptr + k_start, v_ptr + k_start, within, 0, unmasked, rows, length, stride, scale, KEYS,
        False, CAUSAL,
    )  # fmt: skip
    o, maximum, total, k_start, v_start = _add_keys(
        o, maximum, total, q, k_start, v_start, within, unmasked, end, rows, length, stride, scale,
        KEYS, True, CAUSAL,
    )  # fmt: skip
    o = o / total[:, None]
    tl.store(o_ptr + q_start + q_within, o.to(o_ptr.dtype.element_ty), mask=(rows < length)[:, None])
    if LOG_SUMS:
        log_sums = log_sums_ptr + (batch * heads + head) * length
        tl.store(log_sums + rows, maximum + tl.log2(total), mask=rows < length)


@dataclass(frozen=True, slots=True)
class Tile:
    """Queries and keys of a tile, warps of a program, and tiles of keys in shared memory."""

    queries: int
    keys: int
    warps: int
    stages: int


TILES = {
    64: (Tile(128, 64, 4, 2), Tile(64, 64, 4, 2)),
    128: (Tile(128, 128, 8, 2), Tile(64, 64, 4, 2)),
    256: (Tile(128, 64, 8, 2), Tile(64, 32, 4, 2)),
}
"""By head dimension, for GPUs with the shared memory of an H100, and for all others from sm_80 on (99 KiB).

With more than two stages, ptxas serialises wgmma (message C7515, seen with Triton 3.6 and 3.7).
"""


def tile_for(dimension: int, rows: int, heads: int, device: torch.device) -> Tile:
    """That of `TILES` for that GPU, with half of the queries where SMs would be idle."""
    multiprocessors, shared_bytes = limits(device, MOST_SHARED_BYTES)
    tile = TILES[dimension][shared_bytes < MOST_SHARED_BYTES]
    queries, warps = rows_of_program(
        tile.queries, tile.warps, dimension, rows=rows, heads=heads, multiprocessors=multiprocessors
    )
    return replace(tile, queries=queries, warps=warps)


def bind_flash(
    q_BSHD: torch.Tensor,
    k_BSHD: torch.Tensor,
    v_BSHD: torch.Tensor,
    *,
    causal: bool,
    tile: Tile | None = None,
    o_BSHD: torch.Tensor | None = None,
    log_sums_BHS: torch.Tensor | None = None,
) -> Launch:
    """Launch of `flash_kernel` over contiguous tensors of 16-bit floats.

    `o_BSHD`: where the output goes, if not to a new tensor. `log_sums_BHS`: where the base-2 logarithm of each row's sum of
    exponentials goes, in fp32, if a backward pass needs it.
    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64, 128 and 256.
    """
    require_contiguous(q_BSHD=q_BSHD, k_BSHD=k_BSHD, v_BSHD=v_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    require_head_dimension(dimension)
    group = group_of(heads, k_BSHD.shape[2])
    tile = tile or tile_for(dimension, length, batches * heads, q_BSHD.device)
    o_BSHD = torch.empty_like(q_BSHD) if o_BSHD is None else o_BSHD
    log_sums = torch.empty(1, device=q_BSHD.device) if log_sums_BHS is None else log_sums_BHS
    grid = (triton.cdiv(length, tile.queries) * batches * heads,)

    def launch() -> torch.Tensor:
        flash_kernel[grid](
            q_BSHD, k_BSHD, v_BSHD, o_BSHD, log_sums, length, heads, group, LOG2_E / math.sqrt(dimension),
            D=dimension, QUERIES=tile.queries, KEYS=tile.keys, CAUSAL=causal, LOG_SUMS=log_sums_BHS is not None,
            num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
        return o_BSHD

    return launch
