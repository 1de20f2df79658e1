"""Triton kernel of attention that loads by TMA, through tensor descriptors that it makes on the device."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernelviz.ops.attention.tile_schedule import schedule_table
from kernelviz.ops.attention.triton import LOG2_E, SIZES, Tile, _online_softmax
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.kernels.triton_scratch import ScratchContext


@triton.jit
def _add_keys(o, maximum, total, q, k_map, v_map, batch, column, first, end, rows, length, scale, D: tl.constexpr,
              KEYS: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """Keys `first` to `end`; MASKED if some of them are behind the last one, or behind a query."""
    for key in range(first, end, KEYS):
        k = k_map.load([batch, key, column]).reshape(KEYS, D)
        scores = tl.dot(q, k.T)
        if MASKED:
            keys = key + tl.arange(0, KEYS)
            seen = (keys < length)[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            scores = tl.where(seen, scores, float("-inf"))
        weights, maximum, total, factor = _online_softmax(scores, maximum, total, scale)
        o = o * factor[:, None]
        v = v_map.load([batch, key, column]).reshape(KEYS, D)
        o = tl.dot(weights.to(v.dtype), v, o)
    return o, maximum, total


@triton.jit(do_not_specialize=SIZES)
def descriptors_kernel(q_ptr, k_ptr, v_ptr, o_ptr, log_sums_ptr, schedule_ptr, rounds, batches, length, heads,
                       group, scale, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
                       CAUSAL: tl.constexpr, LOG_SUMS: tl.constexpr, PARTS: tl.constexpr):  # fmt: skip
    """Tiles of queries by `schedule_table`, in `rounds` rows. `scale` is log2(e) / √D."""
    # TMA reads zeros behind the end of a sequence and writes nothing there.
    key_heads = heads // group
    row_elements = heads * D
    key_elements = key_heads * D
    sequence = length.to(tl.int64)
    q_map = tl.make_tensor_descriptor(
        q_ptr, [batches, length, row_elements], [sequence * row_elements, row_elements, 1], [1, QUERIES, D]
    )
    o_map = tl.make_tensor_descriptor(
        o_ptr, [batches, length, row_elements], [sequence * row_elements, row_elements, 1], [1, QUERIES, D // PARTS]
    )
    k_map = tl.make_tensor_descriptor(
        k_ptr, [batches, length, key_elements], [sequence * key_elements, key_elements, 1], [1, KEYS, D]
    )
    v_map = tl.make_tensor_descriptor(
        v_ptr, [batches, length, key_elements], [sequence * key_elements, key_elements, 1], [1, KEYS, D]
    )
    tiles = tl.cdiv(length, QUERIES)
    programs = tl.num_programs(0)
    for round in range(rounds):
        number = tl.load(schedule_ptr + round * programs + tl.program_id(0))
        # Without a tile, no keys are loaded, and nothing is stored because it is behind the last batch.
        last = length if number >= 0 else 0
        number = number if number >= 0 else tiles * batches * heads
        tile = number % tiles
        of_all = number // tiles
        head = of_all % heads
        batch = of_all // heads
        row = tile * QUERIES
        rows = row + tl.arange(0, QUERIES)
        q = q_map.load([batch, row, head * D]).reshape(QUERIES, D)
        o = tl.zeros((QUERIES, D), tl.float32)
        maximum = tl.full((QUERIES,), float("-inf"), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        # Each row sees the first key, so its maximum is finite after the first tile.
        end = tl.minimum(last, row + QUERIES) if CAUSAL else last
        unmasked = (tl.minimum(last, row + 1) if CAUSAL else last) // KEYS * KEYS
        column = head // group * D
        o, maximum, total = _add_keys(
            o, maximum, total, q, k_map, v_map, batch, column, 0, unmasked, rows, length, scale, D, KEYS, False,
            CAUSAL,
        )  # fmt: skip
        o, maximum, total = _add_keys(
            o, maximum, total, q, k_map, v_map, batch, column, unmasked, end, rows, length, scale, D, KEYS, True,
            CAUSAL,
        )  # fmt: skip
        o = o / total[:, None]
        rounded = o.to(o_ptr.dtype.element_ty)
        # What is being stored lies in shared memory: halves leave room for the tiles of keys.
        if PARTS == 1:
            o_map.store([batch, row, head * D], rounded.reshape(1, QUERIES, D))
        else:
            left, right = rounded.reshape(QUERIES, 2, D // 2).permute(0, 2, 1).split()
            o_map.store([batch, row, head * D], left.reshape(1, QUERIES, D // 2))
            o_map.store([batch, row, head * D + D // 2], right.reshape(1, QUERIES, D // 2))
        if LOG_SUMS:
            log_sums = log_sums_ptr + of_all.to(tl.int64) * length
            tl.store(log_sums + rows, maximum + tl.log2(total), mask=rows < last)


TILES = {
    64: ((Tile(64, 128, 4, 1), 4), (Tile(64, 64, 4, 2), 1)),
    128: ((Tile(64, 64, 4, 1), 4), (Tile(64, 32, 4, 2), 1)),
    256: ((Tile(128, 64, 8, 2), 1), (Tile(64, 16, 4, 2), 1)),
}
"""By head dimension, for GPUs with the shared memory of an H100, and for all others (99 KiB): tile, and programs of an SM.

Triton waits for each product before the next instruction. So only other programs of the SM use the tensor cores while one
computes exponentials: with heads of 128, four small programs are up to 1.6 times as fast as one of 128 queries with three stages
(H200), although each tile of keys is copied twice as often and registers that the loop does not need are spilled.
"""
MOST_REGISTERS = 255
"""Of a thread."""
REGISTERS = 65536
"""Of an SM."""


def tile_for(dimension: int, device: torch.device) -> tuple[Tile, int]:
    """That of `TILES` for that GPU, and at most two programs of an SM on Blackwell; without a GPU, for an H100.

    Two programs with heads of 128 fill Blackwell's tensor memory.
    """
    tile, programs = TILES[dimension][limits(device, MOST_SHARED_BYTES)[1] < MOST_SHARED_BYTES]
    hopper = device.type != "cuda" or torch.cuda.get_device_capability(device)[0] == 9
    return tile, programs if hopper else min(2, programs)


def register_limit(warps: int, programs: int) -> int | None:
    """Registers of a thread with which so many programs fit on an SM; None if that is no limit.

    >>> register_limit(4, 4), register_limit(4, 2)
    (128, None)
    """
    registers = REGISTERS // (32 * warps * programs)
    return registers if registers < MOST_REGISTERS else None


def bind_descriptors(
    q_BSHD: torch.Tensor,
    k_BSHD: torch.Tensor,
    v_BSHD: torch.Tensor,
    *,
    causal: bool,
    tile: Tile | None = None,
    programs_of_sm: int = 1,
    o_BSHD: torch.Tensor | None = None,
    log_sums_BHS: torch.Tensor | None = None,
) -> Launch:
    """Launch of `descriptors_kernel` over contiguous tensors of 16-bit floats.

    `o_BSHD`: where the output goes, if not to a new tensor. `log_sums_BHS`: where the base-2 logarithm of each row's sum of
    exponentials goes, in fp32, if a backward pass needs it.
    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64, 128 and 256.
    """
    require_contiguous(q_BSHD=q_BSHD, k_BSHD=k_BSHD, v_BSHD=v_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    require_head_dimension(dimension)
    group = group_of(heads, k_BSHD.shape[2])
    if tile is None:
        tile, programs_of_sm = tile_for(dimension, q_BSHD.device)
    o_BSHD = torch.empty_like(q_BSHD) if o_BSHD is None else o_BSHD
    log_sums = torch.empty(1, device=q_BSHD.device) if log_sums_BHS is None else log_sums_BHS
    tiles = triton.cdiv(length, tile.queries)
    programs = min(programs_of_sm * limits(q_BSHD.device)[0], tiles * batches * heads)
    schedule = schedule_table(tiles, batches * heads, programs, q_BSHD.device, causal=causal)
    kernel = descriptors_kernel[(programs,)]
    scratch = ScratchContext(q_BSHD.device)

    def launch() -> torch.Tensor:
        scratch.launch(
            kernel, q_BSHD, k_BSHD, v_BSHD, o_BSHD, log_sums, schedule, schedule.shape[0], batches, length, heads, group,
            LOG2_E / math.sqrt(dimension), D=dimension, QUERIES=tile.queries, KEYS=tile.keys, CAUSAL=causal,
            LOG_SUMS=log_sums_BHS is not None, PARTS=2 if dimension == 256 else 1, num_warps=tile.warps,
            num_stages=tile.stages, maxnreg=register_limit(tile.warps, programs_of_sm),
        )  # fmt: skip
        return o_BSHD

    return launch
