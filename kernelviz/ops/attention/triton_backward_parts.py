"""Parts of tiles of keys in the Triton kernels of attention's backward pass: what a program computes, and how parts are added."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.attention.backward_parts import divided, steps_of_tiles
from kernelviz.ops.attention.triton import SIZES
from kernelviz.ops.kernels.limits import limits

ADDED_ROWS = 16
"""Keys of a tile whose parts a program adds."""
WARPS_OF_SM = 8
"""Programs with fewer warps run two on an SM, so that one computes while the other waits."""


@triton.jit
def part_of_program(table_ptr, PARTS: tl.constexpr):
    """Which tile of keys of all, and if PARTS its first step and that after its last one."""
    tile_of_all = tl.program_id(0)
    first = 0
    end = 0
    if PARTS:
        row = table_ptr + 4 * tl.program_id(0)
        tile_of_all = tl.load(row)
        first = tl.load(row + 1)
        end = tl.load(row + 2)
    return tile_of_all, first, end


@triton.jit
def heads_of_part(first, end, tiles, key_head, group, PARTS: tl.constexpr):
    """The first head of a key head, and that after the last one; `tiles` steps a head."""
    first_head = key_head * group
    end_head = key_head * group + group
    if PARTS:
        end_head = first_head + tl.cdiv(end, tiles)
        first_head += first // tiles
    return first_head, end_head


@triton.jit
def positions_of_part(first, end, head, first_row, tiles, length, QUERIES: tl.constexpr, PARTS: tl.constexpr):
    """The first query of a head of a group, and where its last tile ends; from `first_row` on there are `tiles` steps."""
    first_query = first_row
    end_query = length
    if PARTS:
        first_query = first_row + tl.maximum(0, first - head * tiles) * QUERIES
        end_query = first_row + tl.minimum(tiles, end - head * tiles) * QUERIES
    return first_query, end_query


@triton.jit
def store_gradients(dk, dv, dk_ptr, dv_ptr, offsets, there, KEYS: tl.constexpr, D: tl.constexpr, PARTS: tl.constexpr):
    """To dk and dv, or if PARTS to fp32 sums of this program, (programs, KEYS, D)."""
    if PARTS:
        of_part = tl.program_id(0) * KEYS + tl.arange(0, KEYS)
        sums = of_part.to(tl.int64)[:, None] * D + tl.arange(0, D)[None, :]
        tl.store(dk_ptr + sums, dk)
        tl.store(dv_ptr + sums, dv)
    else:
        tl.store(dk_ptr + offsets, dk.to(dk_ptr.dtype.element_ty), mask=there[:, None])
        tl.store(dv_ptr + offsets, dv.to(dv_ptr.dtype.element_ty), mask=there[:, None])


@triton.jit(do_not_specialize=("key_heads", "sums_of_gradient", *SIZES))
def parts_kernel(sums_ptr, firsts_ptr, dk_ptr, dv_ptr, sums_of_gradient, length, key_heads, D: tl.constexpr,
                 KEYS: tl.constexpr, ROWS: tl.constexpr):  # fmt: skip
    """ROWS keys of dk or dv: the sums (2, parts, KEYS, D) of the parts of a tile of keys, added in their order."""
    tile_of_all = tl.program_id(0) // (KEYS // ROWS)
    rows = tl.program_id(0) % (KEYS // ROWS) * ROWS + tl.arange(0, ROWS)
    tiles = tl.cdiv(length, KEYS)
    of_all = tile_of_all // tiles
    keys = tile_of_all % tiles * KEYS + rows
    columns = tl.arange(0, D)
    within = rows[:, None] * D + columns[None, :]
    first = tl.load(firsts_ptr + tile_of_all)
    end = tl.load(firsts_ptr + tile_of_all + 1)
    start = sums_ptr + tl.program_id(1).to(tl.int64) * sums_of_gradient
    total = tl.zeros((ROWS, D), tl.float32)
    start += first.to(tl.int64) * (KEYS * D)
    for _ in range(first, end):
        total += tl.load(start + within)
        start += KEYS * D
    batch = (of_all // key_heads).to(tl.int64)
    offsets = ((batch * length + keys[:, None]) * key_heads + of_all % key_heads) * D + columns[None, :]
    rounded = total.to(dk_ptr.dtype.element_ty)
    if tl.program_id(1) == 0:
        tl.store(dk_ptr + offsets, rounded, mask=(keys < length)[:, None])
    else:
        tl.store(dv_ptr + offsets, rounded, mask=(keys < length)[:, None])


@dataclass(frozen=True, slots=True)
class KeyPrograms:
    """The programs of a pass over tiles of keys.

    `parts`: whether several share a tile of keys; then `table` says which part each has, and dk and dv of the parts go to `to`.
    `add` enqueues what has to follow.
    """

    count: int
    parts: bool
    table: torch.Tensor
    to: tuple[torch.Tensor, torch.Tensor]
    add: Callable[[], None]


def bind_key_programs(
    dk_BSHD: torch.Tensor,
    dv_BSHD: torch.Tensor,
    group: int,
    *,
    queries: int,
    keys: int,
    warps: int,
    causal: bool,
    longest: int | None,
) -> KeyPrograms:
    """Programs with tiles of `queries` and `keys`, for dk and dv of key heads that `group` query heads share.

    `longest`: most tiles of queries of a program; None for those of `backward_parts.choose_longest`.
    """
    batches, length, key_heads, dimension = dk_BSHD.shape
    copies = batches * key_heads
    steps = steps_of_tiles(length, group, queries, keys, causal=causal)
    tiles = len(steps) * copies
    at_once = limits(dk_BSHD.device)[0] * max(1, WARPS_OF_SM // warps)
    division = divided(steps, copies, at_once, longest)
    if division is None:
        return KeyPrograms(tiles, False, dk_BSHD, (dk_BSHD, dv_BSHD), lambda: None)
    count = len(division.parts)
    table, firsts = division.tables(dk_BSHD.device)
    sums = torch.empty((2, count, keys, dimension), dtype=torch.float32, device=dk_BSHD.device)
    rows = min(ADDED_ROWS, keys)
    grid = (tiles * (keys // rows), 2)

    def add() -> None:
        parts_kernel[grid](
            sums, firsts, dk_BSHD, dv_BSHD, count * keys * dimension, length, key_heads, D=dimension, KEYS=keys, ROWS=rows,
            num_warps=4,
        )  # fmt: skip

    return KeyPrograms(count, True, table, (sums[0], sums[1]), add)
