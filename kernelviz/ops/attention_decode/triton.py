"""Triton kernels of the ops of this folder, over contiguous caches or pages.

A program computes a query head, a key/value head, a part of its tokens, or an equal share of all tokens. Weights are powers of
two: log₂ e is part of the scale of the scores.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.attention_decode.cache import Cache
from kernelviz.ops.attention_decode.splits import most_shares_of_row, split_count
from kernelviz.ops.attention_decode.tiles import Tile, one_step
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Z
from kernelviz.ops.kernels.limits import limits

LOG2_E = 1.4426950408889634
LEAST_ROWS = 16
"""Of a factor of tl.dot."""


@triton.jit
def _rows_of_tokens(table_ptr, sequence, tokens, length, PAGED: tl.constexpr, PAGE: tl.constexpr):
    """The rows of the cache, of all heads of a token each, that hold these tokens of a sequence. 64-bit: a cache passes 2^31."""
    if PAGED:
        table_row = table_ptr + sequence.to(tl.int64) * tl.cdiv(length, PAGE)
        pages = tl.load(table_row + tokens // PAGE, mask=tokens < length, other=0)
        return pages.to(tl.int64) * PAGE + tokens % PAGE
    return sequence.to(tl.int64) * length + tokens


@triton.jit
def head_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, out_ptr, length, hk, group, scale,
    D: tl.constexpr, TILE: tl.constexpr, PAGED: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """One query head by products and sums in fp32."""
    number = tl.program_id(0)
    hq = hk * group
    sequence = number // hq
    head = number % hq // group
    columns = tl.arange(0, D)
    q = tl.load(q_ptr + number.to(tl.int64) * D + columns).to(tl.float32) * scale
    top = -float("inf")
    total = 0.0
    sums = tl.zeros((D,), tl.float32)
    for first in range(0, length, TILE):
        tokens = first + tl.arange(0, TILE)
        inside = tokens < length
        rows = _rows_of_tokens(table_ptr, sequence, tokens, length, PAGED, PAGE)
        at = (rows * hk + head)[:, None] * D + columns[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        s = tl.where(inside, tl.sum(k * q[None, :], 1), -float("inf"))
        now = tl.maximum(top, tl.max(s, 0))
        p = tl.exp2(s - now)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0).to(tl.float32)
        rescale = tl.exp2(top - now)
        total = total * rescale + tl.sum(p, 0)
        sums = sums * rescale + tl.sum(p[:, None] * v, 0)
        top = now
    tl.store(out_ptr + number.to(tl.int64) * D + columns, (sums / total).to(out_ptr.dtype.element_ty))


@triton.jit
def _attend(
    q, k_ptr, v_ptr, table_ptr, sequence, head, begin, end, length, hk, scale,
    M: tl.constexpr, D: tl.constexpr, TILE: tl.constexpr, PAGED: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Σ p v (M, D) in fp32, Σ p, and the largest score, of M query heads q (M, D) and the tokens from `begin` to `end`."""
    columns = tl.arange(0, D)
    top = tl.full((M,), -float("inf"), tl.float32)
    total = tl.zeros((M,), tl.float32)
    sums = tl.zeros((M, D), tl.float32)
    for first in range(begin, end, TILE):
        tokens = first + tl.arange(0, TILE)
        inside = tokens < end
        rows = _rows_of_tokens(table_ptr, sequence, tokens, length, PAGED, PAGE)
        at = (rows * hk + head)[:, None] * D + columns[None, :]
        k = tl.load(k_ptr + at, mask=inside[:, None], other=0.0)
        v = tl.load(v_ptr + at, mask=inside[:, None], other=0.0)
        s = tl.where(inside[None, :], tl.dot(q, tl.trans(k)) * scale, -float("inf"))
        now = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - now[:, None])
        rescale = tl.exp2(top - now)
        total = total * rescale + tl.sum(p, 1)
        sums = tl.dot(p.to(v.dtype), v, sums * rescale[:, None])
        top = now
    return sums, total, top


@triton.jit
def packed_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, out_ptr, length, hk, group, scale,
    M: tl.constexpr, D: tl.constexpr, TILE: tl.constexpr, PAGED: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """All query heads of a key/value head."""
    row = tl.program_id(0)
    members = tl.arange(0, M)
    at = (row.to(tl.int64) * group + members)[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + at, mask=(members < group)[:, None], other=0.0)
    sums, total, _ = _attend(
        q, k_ptr, v_ptr, table_ptr, row // hk, row % hk, 0, length, length, hk, scale, M, D, TILE, PAGED, PAGE
    )
    tl.store(out_ptr + at, (sums / total[:, None]).to(out_ptr.dtype.element_ty), mask=(members < group)[:, None])


@triton.jit
def _store_part(parts_ptr, tops_ptr, totals_ptr, part, sums, total, top, group, M: tl.constexpr, D: tl.constexpr):
    members = tl.arange(0, M)
    at = part.to(tl.int64) * group + members
    tl.store(parts_ptr + at[:, None] * D + tl.arange(0, D)[None, :], sums, mask=(members < group)[:, None])
    tl.store(tops_ptr + at, top, mask=members < group)
    tl.store(totals_ptr + at, total, mask=members < group)


@triton.jit
def split_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, parts_ptr, tops_ptr, totals_ptr, length, tiles_of_part, splits, hk, group, scale,
    M: tl.constexpr, D: tl.constexpr, TILE: tl.constexpr, PAGED: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """A part of the tokens of a key/value head. Neighbouring programs take the heads of the same tokens."""
    head = tl.program_id(0)
    split = tl.program_id(1)
    sequence = tl.program_id(2)
    row = sequence * hk + head
    members = tl.arange(0, M)
    at = (row.to(tl.int64) * group + members)[:, None] * D + tl.arange(0, D)[None, :]
    q = tl.load(q_ptr + at, mask=(members < group)[:, None], other=0.0)
    begin = split * tiles_of_part * TILE
    end = min(begin + tiles_of_part * TILE, length)
    sums, total, top = _attend(
        q, k_ptr, v_ptr, table_ptr, sequence, head, begin, end, length, hk, scale, M, D, TILE, PAGED, PAGE
    )
    _store_part(parts_ptr, tops_ptr, totals_ptr, row * splits + split, sums, total, top, group, M, D)


@triton.jit
def combine_kernel(parts_ptr, tops_ptr, totals_ptr, out_ptr, splits, group, D: tl.constexpr, SPLITS: tl.constexpr):
    """One query head from its parts: each is rescaled to the largest maximum."""
    number = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, D)
    numbers = tl.arange(0, SPLITS)
    at = (number // group * splits + numbers) * group + number % group
    tops = tl.load(tops_ptr + at, mask=numbers < splits, other=-float("inf"))
    top = tl.max(tops, 0)
    weights = tl.exp2(tops - top)
    total = tl.sum(weights * tl.load(totals_ptr + at, mask=numbers < splits, other=0.0), 0)
    parts = tl.load(parts_ptr + at[:, None] * D + columns[None, :], mask=(numbers < splits)[:, None], other=0.0)
    sums = tl.sum(weights[:, None] * parts, 0)
    tl.store(out_ptr + number * D + columns, (sums / total).to(out_ptr.dtype.element_ty))


@triton.jit
def scheduled_kernel(
    q_ptr, k_ptr, v_ptr, table_ptr, out_ptr, parts_ptr, tops_ptr, totals_ptr, length, tiles, hk, group, scale,
    M: tl.constexpr, D: tl.constexpr, TILE: tl.constexpr, PAGED: tl.constexpr, PAGE: tl.constexpr,
):  # fmt: skip
    """Equal shares of the tiles of all sequences. The programs of a share, one for each head, take the same tokens. A program
    begins and ends within a sequence at most once each: these are its two parts."""
    head = tl.program_id(0)
    share = tl.program_id(1)
    of_row = tl.cdiv(length, TILE)
    first_tile = (share.to(tl.int64) * tiles // tl.num_programs(1)).to(tl.int32)
    last_tile = ((share + 1).to(tl.int64) * tiles // tl.num_programs(1)).to(tl.int32)
    members = tl.arange(0, M)
    tile = first_tile
    while tile < last_tile:
        sequence = tile // of_row
        begin = tile - sequence * of_row
        count = min(of_row - begin, last_tile - tile)
        at = ((sequence * hk + head).to(tl.int64) * group + members)[:, None] * D + tl.arange(0, D)[None, :]
        q = tl.load(q_ptr + at, mask=(members < group)[:, None], other=0.0)
        end = min((begin + count) * TILE, length)
        sums, total, top = _attend(
            q, k_ptr, v_ptr, table_ptr, sequence, head, begin * TILE, end, length, hk, scale, M, D, TILE, PAGED, PAGE
        )
        if count == of_row:
            tl.store(
                out_ptr + at, (sums / total[:, None]).to(out_ptr.dtype.element_ty), mask=(members < group)[:, None]
            )
        else:
            part = (2 * share + (sequence * of_row > first_tile).to(tl.int32)) * hk + head
            _store_part(parts_ptr, tops_ptr, totals_ptr, part, sums, total, top, group, M, D)
        tile += count


@triton.jit
def combine_shares_kernel(
    parts_ptr, tops_ptr, totals_ptr, out_ptr, length, tiles, shares, hk, group,
    D: tl.constexpr, TILE: tl.constexpr, SHARES: tl.constexpr,
):  # fmt: skip
    """One query head from the parts of the shares that its sequence is in; nothing where it is in one."""
    number = tl.program_id(0)
    row = number // group
    head = row % hk
    of_row = tl.cdiv(length, TILE)
    first_tile = row // hk * of_row
    first = (((first_tile + 1).to(tl.int64) * shares - 1) // tiles).to(tl.int32)
    last = (((first_tile + of_row).to(tl.int64) * shares - 1) // tiles).to(tl.int32)
    if last > first:
        columns = tl.arange(0, D)
        share = first + tl.arange(0, SHARES)
        begins_before = share.to(tl.int64) * tiles // shares < first_tile
        part = (2 * share + begins_before.to(tl.int32)) * hk + head
        at = part.to(tl.int64) * group + number % group
        tops = tl.load(tops_ptr + at, mask=share <= last, other=-float("inf"))
        weights = tl.exp2(tops - tl.max(tops, 0))
        total = tl.sum(weights * tl.load(totals_ptr + at, mask=share <= last, other=0.0), 0)
        parts = tl.load(parts_ptr + at[:, None] * D + columns[None, :], mask=(share <= last)[:, None], other=0.0)
        sums = tl.sum(weights[:, None] * parts, 0)
        tl.store(out_ptr + number.to(tl.int64) * D + columns, (sums / total).to(out_ptr.dtype.element_ty))


def _rows_of_group(group: int) -> int:
    return max(LEAST_ROWS, int(triton.next_power_of_2(group)))


def _parts(cache: Cache, count: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Memory for `count` parts: sums (count, group, D), maxima and totals (count, group), fp32."""
    shape, device = (count, cache.group), cache.q_BHD.device
    sums = torch.empty((*shape, cache.d), dtype=torch.float32, device=device)
    return sums, torch.empty(shape, device=device), torch.empty(shape, device=device)


def _scale(cache: Cache) -> float:
    return LOG2_E / math.sqrt(cache.d)


def bind_heads(cache: Cache) -> Launch:
    """A program per query head."""
    out = torch.empty_like(cache.q_BHD)
    sizes = {"D": cache.d, "TILE": 2048 // cache.d, "PAGED": cache.paged, "PAGE": cache.page, "num_warps": 4}

    def launch() -> torch.Tensor:
        head_kernel[(cache.b * cache.hq,)](
            *cache.tensors, out, cache.length, cache.hk, cache.group, _scale(cache), **sizes, num_stages=4
        )
        return out

    return launch


def bind_packed(cache: Cache, tile: Tile) -> Launch:
    """A program per key/value head."""
    out = torch.empty_like(cache.q_BHD)
    options = _options(cache, tile)
    short = one_step(cache.length, cache.d, tile.fitting(limits(cache.q_BHD.device)[1]))
    if short is not None:
        # With one stage the values would wait for the keys. With two both are copied at once, to as much shared memory.
        options |= {"TILE": short.tokens, "num_warps": short.warps, "num_stages": 2}

    def launch() -> torch.Tensor:
        packed_kernel[(cache.b * cache.hk,)](
            *cache.tensors, out, cache.length, cache.hk, cache.group, _scale(cache), **options
        )
        return out

    return launch


def bind_split(cache: Cache, tile: Tile) -> Launch:
    """A program per key/value head and part of the tokens, and a second kernel that combines the parts.

    Errors: BadField for more sequences than a grid has along z.
    """
    if cache.b > LARGEST_GRID_Z:
        raise BadField("size b", cache.b, f"this kernel takes at most {LARGEST_GRID_Z} sequences; choose triton_packed")
    out, options, rows = torch.empty_like(cache.q_BHD), _options(cache, tile), cache.b * cache.hk
    tiles = -(-cache.length // int(options["TILE"]))
    wanted = split_count(rows, tiles, limits(cache.q_BHD.device)[0] * tile.blocks)
    tiles_of_part = -(-tiles // wanted)
    splits = -(-tiles // tiles_of_part)
    parts = _parts(cache, rows * splits)

    def launch() -> torch.Tensor:
        split_kernel[(cache.hk, splits, cache.b)](
            *cache.tensors, *parts, cache.length, tiles_of_part, splits, cache.hk, cache.group, _scale(cache), **options
        )
        combine_kernel[(cache.b * cache.hq,)](
            *parts, out, splits, cache.group, D=cache.d, SPLITS=triton.next_power_of_2(splits), num_warps=4
        )
        return out

    return launch


def bind_scheduled(cache: Cache, tile: Tile) -> Launch:
    """Programs with equal shares of all tiles, and a second kernel for the sequences that several shares have parts of."""
    out, options = torch.empty_like(cache.q_BHD), _options(cache, tile)
    of_row = -(-cache.length // int(options["TILE"]))
    tiles = cache.b * of_row
    shares = max(1, min(limits(cache.q_BHD.device)[0] * tile.blocks // cache.hk, tiles))
    parts = _parts(cache, 2 * shares * cache.hk)
    most = int(triton.next_power_of_2(most_shares_of_row(cache.b, of_row, shares)))

    def launch() -> torch.Tensor:
        scheduled_kernel[(cache.hk, shares)](
            *cache.tensors, out, *parts, cache.length, tiles, cache.hk, cache.group, _scale(cache), **options
        )
        if most > 1:
            combine_shares_kernel[(cache.b * cache.hq,)](
                *parts,
                out,
                cache.length,
                tiles,
                shares,
                cache.hk,
                cache.group,
                D=cache.d,
                TILE=options["TILE"],
                SHARES=most,
                num_warps=4,
            )
        return out

    return launch


def _options(cache: Cache, tile: Tile) -> dict[str, int | bool]:
    tile = tile.fitting(limits(cache.q_BHD.device)[1])
    return {
        "M": _rows_of_group(cache.group),
        "D": cache.d,
        "TILE": tile.tokens(cache.d),
        "PAGED": cache.paged,
        "PAGE": cache.page,
        "num_warps": tile.warps,
        "num_stages": tile.stages,
    }
