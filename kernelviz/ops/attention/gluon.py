"""Gluon kernel of attention: one warp loads by TMA into rings, two warpgroups compute 64 queries each by asynchronous wgmma.

A warpgroup issues the scores of a tile of keys together with the product of the weights of the tile before and their values. So
the tensor cores work on that product during the exponentials. Weights go from registers to the tensor cores.
Written for Gluon of Triton 3.6 and 3.7: arguments that 3.7 renamed are given by position.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import triton
from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.experimental.gluon.language.nvidia.hopper import (
    fence_async_shared,
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_wait,
)
from triton.experimental.gluon.nvidia.hopper import TensorDescriptor

from kernelviz.ops.attention.tile_schedule import schedule_table
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import limits

LOG2_E = 1.4426950408889634
CONSUMER_REGISTERS = 240
PRODUCER_REGISTERS = 24
LAUNCH_REGISTERS = 168
"""Registers per thread: at launch for 3 warpgroups (65,536 / 384, rounded down to a multiple of 8), and after setmaxnreg."""


@gluon.jit
def _position(number, length, CAUSAL: gl.constexpr, ROWS: gl.constexpr, KEYS: gl.constexpr):
    """First row, head of all batches, and key tiles of a tile."""
    tiles = gl.cdiv(length, ROWS)
    row = number % tiles * ROWS
    keys = length
    if CAUSAL:
        keys = gl.minimum(length, row + ROWS)
    return row, number // tiles, gl.cdiv(keys, KEYS)


@gluon.jit
def _load(q, k, v, q_tile, k_ring, v_ring, q_full, q_empty, k_full, k_empty, v_full, v_empty, schedule, rounds, length,
          heads, group, CAUSAL: gl.constexpr, ROWS: gl.constexpr, KEYS: gl.constexpr, D: gl.constexpr,
          STAGES: gl.constexpr):  # fmt: skip
    """The warp that loads. It copies keys before the values of the tile before, the order in which they are needed."""
    before = 0  # tiles of keys that were loaded for earlier tiles of queries
    for round in range(rounds):
        number = gl.load(schedule + round * gl.num_programs(0) + gl.program_id(0))
        if number >= 0:
            row, head, steps = _position(number, length, CAUSAL, ROWS, KEYS)
            batch = head // heads
            column = head % heads * D
            key_column = head % heads // group * D
            mbarrier.wait(q_empty.index(0), (round & 1) ^ 1)
            mbarrier.expect(q_full.index(0), ROWS * D * 2)
            tma.async_copy_global_to_shared(q, [batch, row, column], q_full.index(0), q_tile)
            for step in range(steps + 1):
                if step < steps:
                    slot = (before + step) % STAGES
                    mbarrier.wait(k_empty.index(slot), ((before + step) // STAGES & 1) ^ 1)
                    mbarrier.expect(k_full.index(slot), KEYS * D * 2)
                    key = step * KEYS
                    tma.async_copy_global_to_shared(k, [batch, key, key_column], k_full.index(slot), k_ring.index(slot))
                if step > 0:
                    last = before + step - 1
                    slot = last % STAGES
                    mbarrier.wait(v_empty.index(slot), (last // STAGES & 1) ^ 1)
                    mbarrier.expect(v_full.index(slot), KEYS * D * 2)
                    key = (step - 1) * KEYS
                    tma.async_copy_global_to_shared(v, [batch, key, key_column], v_full.index(slot), v_ring.index(slot))
            before += steps


@gluon.jit
def _masked(scores, first_row, first_key, length, CAUSAL: gl.constexpr, KEYS: gl.constexpr, layout: gl.constexpr):
    """Scores of keys behind the last one, and if CAUSAL behind a query, become -inf."""
    keys = first_key + gl.arange(0, KEYS, gl.SliceLayout(0, layout))
    seen = (keys < length)[None, :]
    if CAUSAL:
        rows = first_row + gl.arange(0, 64, gl.SliceLayout(1, layout))
        seen = seen & (keys[None, :] <= rows[:, None])
    return gl.where(seen, scores, float("-inf"))


@gluon.jit
def _softmax(scores, maximum, total, scale):
    """Weights before they are divided, the maximum and the sum of each row with these scores, and what earlier sums are times."""
    greater = gl.maximum(maximum, gl.max(scores, 1) * scale)
    weights = gl.exp2(scores * scale - greater[:, None])
    factor = gl.exp2(maximum - greater)
    return weights, greater, total * factor + gl.sum(weights, 1), factor


@gluon.jit
def _next_keys(o, weights, maximum, total, q, k_ring, v_ring, k_full, k_empty, v_full, v_empty, at, key, first_row,
               length, scale, MASKED: gl.constexpr, CAUSAL: gl.constexpr, KEYS: gl.constexpr, D: gl.constexpr,
               STAGES: gl.constexpr):  # fmt: skip
    """Scores of the tile of keys number `at`, and the weighted sum of the tile before it, whose products are issued together."""
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, KEYS, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16])
    operand: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=o_layout, k_width=2)
    slot = at % STAGES
    v_slot = (at - 1) % STAGES
    zeros = gl.zeros((64, KEYS), gl.float32, layout)
    mbarrier.wait(k_full.index(slot), at // STAGES & 1)
    mbarrier.wait(v_full.index(v_slot), (at - 1) // STAGES & 1)
    k = k_ring.index(slot).reshape((KEYS, D)).permute((1, 0))
    scores = warpgroup_mma(q, k, zeros, use_acc=False, is_async=True)
    o = warpgroup_mma(weights, v_ring.index(v_slot).reshape((KEYS, D)), o, is_async=True)
    scores = warpgroup_mma_wait(num_outstanding=1, deps=(scores,))
    mbarrier.arrive(k_empty.index(slot), count=1)
    if MASKED:
        scores = _masked(scores, first_row, key, length, CAUSAL, KEYS, layout)
    exponentials, maximum, total, factor = _softmax(scores, maximum, total, scale)
    o = warpgroup_mma_wait(num_outstanding=0, deps=(o,))
    mbarrier.arrive(v_empty.index(v_slot), count=1)
    o = o * gl.convert_layout(factor, gl.SliceLayout(1, o_layout))[:, None]
    weights = gl.convert_layout(exponentials.to(v_ring.dtype), operand)
    return o, weights, maximum, total


@gluon.jit
def _store_part(o, buffers, part, batch, row, column, NUMBER: gl.constexpr, BUFFERS: gl.constexpr, WIDTH: gl.constexpr):
    """Columns of 64 rows of O to memory; the buffer is free once the store BUFFERS parts ago has read it."""
    tma.store_wait(BUFFERS - 1)
    buffer = buffers.index(NUMBER % BUFFERS)
    buffer.reshape((64, WIDTH)).store(part.to(o.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(o, [batch, row, column], buffer)


@gluon.jit
def _halves(part, COLUMNS: gl.constexpr):
    return part.reshape((64, 2, COLUMNS // 2)).permute((0, 2, 1)).split()


@gluon.jit
def _compute(o_map, q_tile, k_ring, v_ring, o_buffers, q_full, q_empty, k_full, k_empty, v_full, v_empty, schedule,
             rounds, length, heads, scale, CAUSAL: gl.constexpr, ROWS: gl.constexpr, KEYS: gl.constexpr,
             D: gl.constexpr, STAGES: gl.constexpr, PARTS: gl.constexpr, BUFFERS: gl.constexpr,
             FIRST: gl.constexpr):  # fmt: skip
    """A warpgroup that computes the rows FIRST to FIRST + 64 of each tile."""
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, KEYS, 16])
    o_layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, D, 16])
    operand: gl.constexpr = gl.DotOperandLayout(operand_index=0, parent=o_layout, k_width=2)
    q = q_tile.reshape((ROWS, D)).slice(FIRST, 64, dim=0)
    before = 0
    for round in range(rounds):
        number = gl.load(schedule + round * gl.num_programs(0) + gl.program_id(0))
        if number >= 0:
            tile_row, head, steps = _position(number, length, CAUSAL, ROWS, KEYS)
            row = tile_row + FIRST
            o = gl.zeros((64, D), gl.float32, o_layout)
            maximum = gl.full((64,), float("-inf"), gl.float32, gl.SliceLayout(1, layout))
            total = gl.zeros((64,), gl.float32, gl.SliceLayout(1, layout))
            slot = before % STAGES
            mbarrier.wait(q_full.index(0), round & 1)
            mbarrier.wait(k_full.index(slot), before // STAGES & 1)
            k = k_ring.index(slot).reshape((KEYS, D)).permute((1, 0))
            scores = warpgroup_mma(q, k, gl.zeros((64, KEYS), gl.float32, layout), use_acc=False, is_async=True)
            scores = warpgroup_mma_wait(num_outstanding=0, deps=(scores,))
            mbarrier.arrive(k_empty.index(slot), count=1)
            scores = _masked(scores, row, 0, length, CAUSAL, KEYS, layout)  # each row sees the first key
            exponentials, maximum, total, _ = _softmax(scores, maximum, total, scale)
            weights = gl.convert_layout(exponentials.to(v_ring.dtype), operand)
            unmasked = gl.maximum((gl.minimum(length, tile_row + 1) if CAUSAL else length) // KEYS, 1)
            for step in range(1, unmasked):
                o, weights, maximum, total = _next_keys(
                    o, weights, maximum, total, q, k_ring, v_ring, k_full, k_empty, v_full, v_empty,
                    before + step, 0, row, length, scale, False, CAUSAL, KEYS, D, STAGES,
                )  # fmt: skip
            for step in range(unmasked, steps):
                o, weights, maximum, total = _next_keys(
                    o, weights, maximum, total, q, k_ring, v_ring, k_full, k_empty, v_full, v_empty,
                    before + step, step * KEYS, row, length, scale, True, CAUSAL, KEYS, D, STAGES,
                )  # fmt: skip
            mbarrier.arrive(q_empty.index(0), count=1)
            before += steps
            slot = (before - 1) % STAGES
            mbarrier.wait(v_full.index(slot), (before - 1) // STAGES & 1)
            o = warpgroup_mma(weights, v_ring.index(slot).reshape((KEYS, D)), o, is_async=True)
            o = warpgroup_mma_wait(num_outstanding=0, deps=(o,))
            mbarrier.arrive(v_empty.index(slot), count=1)
            o = o * gl.convert_layout(1.0 / total, gl.SliceLayout(1, o_layout))[:, None]
            batch = head // heads
            column = head % heads * D
            if PARTS == 1:
                _store_part(o_map, o_buffers, o, batch, row, column, 0, BUFFERS, D)
            else:
                left, right = _halves(o, D)
                if PARTS == 2:
                    _store_part(o_map, o_buffers, left, batch, row, column, 0, BUFFERS, D // 2)
                    _store_part(o_map, o_buffers, right, batch, row, column + D // 2, 1, BUFFERS, D // 2)
                else:
                    first, second = _halves(left, D // 2)
                    third, fourth = _halves(right, D // 2)
                    _store_part(o_map, o_buffers, first, batch, row, column, 0, BUFFERS, D // 4)
                    _store_part(o_map, o_buffers, second, batch, row, column + D // 4, 1, BUFFERS, D // 4)
                    _store_part(o_map, o_buffers, third, batch, row, column + D // 2, 2, BUFFERS, D // 4)
                    _store_part(o_map, o_buffers, fourth, batch, row, column + 3 * (D // 4), 3, BUFFERS, D // 4)
    tma.store_wait(0)


@gluon.jit(do_not_specialize=("rounds", "length", "heads", "group"))
def gluon_kernel(q, k, v, o, schedule, rounds, length, heads, group, scale, CAUSAL: gl.constexpr, ROWS: gl.constexpr,
                 KEYS: gl.constexpr, D: gl.constexpr, STAGES: gl.constexpr, PARTS: gl.constexpr, BUFFERS: gl.constexpr,
                 PRODUCER: gl.constexpr, CONSUMER: gl.constexpr):  # fmt: skip
    """`schedule` is that of `schedule_table`, in `rounds` rows; `scale` is log2(e) / √D."""
    q_tile = gl.allocate_shared_memory(q.dtype, [1, ROWS, D], q.layout)
    k_ring = gl.allocate_shared_memory(k.dtype, [STAGES, 1, KEYS, D], k.layout)
    v_ring = gl.allocate_shared_memory(v.dtype, [STAGES, 1, KEYS, D], v.layout)
    upper = gl.allocate_shared_memory(o.dtype, [BUFFERS, 1, 64, D // PARTS], o.layout)
    lower = gl.allocate_shared_memory(o.dtype, [BUFFERS, 1, 64, D // PARTS], o.layout)
    q_full = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    q_empty = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    k_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    k_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    v_empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    mbarrier.init(q_full.index(0), count=1)
    mbarrier.init(q_empty.index(0), count=2)
    for slot in gl.static_range(STAGES):
        mbarrier.init(k_full.index(slot), count=1)
        mbarrier.init(k_empty.index(slot), count=2)
        mbarrier.init(v_full.index(slot), count=1)
        mbarrier.init(v_empty.index(slot), count=2)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_compute, (o, q_tile, k_ring, v_ring, upper, q_full, q_empty, k_full, k_empty, v_full, v_empty, schedule, rounds,
                        length, heads, scale, CAUSAL, ROWS, KEYS, D, STAGES, PARTS, BUFFERS, 0)),
            (_compute, (o, q_tile, k_ring, v_ring, lower, q_full, q_empty, k_full, k_empty, v_full, v_empty, schedule, rounds,
                        length, heads, scale, CAUSAL, ROWS, KEYS, D, STAGES, PARTS, BUFFERS, 64)),
            (_load, (q, k, v, q_tile, k_ring, v_ring, q_full, q_empty, k_full, k_empty, v_full, v_empty, schedule, rounds,
                     length, heads, group, CAUSAL, ROWS, KEYS, D, STAGES)),
        ],
        [4, 1],
        [CONSUMER, PRODUCER],
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Ring:
    """Keys of a tile, tiles of keys and of values in shared memory, stores of 64 rows of O, and buffers that they go through."""

    keys: int
    stages: int
    parts: int
    buffers: int


RINGS = {64: Ring(128, 2, 1, 1), 128: Ring(128, 2, 1, 1), 256: Ring(64, 2, 4, 1)}
"""By head dimension."""
ROWS = 128
"""Queries of a tile: 64 of each warpgroup."""


def bind_warp_specialised(
    q_BSHD: torch.Tensor, k_BSHD: torch.Tensor, v_BSHD: torch.Tensor, *, causal: bool, ring: Ring | None = None
) -> Launch:
    """Launch of `gluon_kernel`, one program for each SM, over contiguous (B, S, Hq, D) and (B, S, Hk, D) of 16-bit floats.

    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64, 128 and 256.
    """
    require_contiguous(q_BSHD=q_BSHD, k_BSHD=k_BSHD, v_BSHD=v_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    require_head_dimension(dimension)
    group = group_of(heads, k_BSHD.shape[2])
    ring = ring or RINGS[dimension]
    o_BSHD = torch.empty_like(q_BSHD)
    tiles = triton.cdiv(length, ROWS)
    programs = min(limits(q_BSHD.device)[0], tiles * batches * heads)
    schedule = schedule_table(tiles, batches * heads, programs, q_BSHD.device, causal=causal)
    grid = (programs,)
    q = _descriptor(q_BSHD, ROWS, dimension)
    k, v = (_descriptor(t, ring.keys, dimension) for t in (k_BSHD, v_BSHD))
    o = _descriptor(o_BSHD, 64, dimension // ring.parts)

    def launch() -> torch.Tensor:
        gluon_kernel[grid](
            q, k, v, o, schedule, schedule.shape[0], length, heads, group, LOG2_E / math.sqrt(dimension), CAUSAL=causal,
            ROWS=ROWS, KEYS=ring.keys, D=dimension, STAGES=ring.stages, PARTS=ring.parts, BUFFERS=ring.buffers,
            PRODUCER=PRODUCER_REGISTERS, CONSUMER=CONSUMER_REGISTERS, num_warps=4, maxnreg=LAUNCH_REGISTERS,
        )  # fmt: skip
        return o_BSHD

    return launch


def _descriptor(tensor_BSHD: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """A tensor map of (B, S, heads × D) in blocks of 1 × rows × columns, swizzled as wgmma reads them."""
    element = gl.bfloat16 if tensor_BSHD.dtype == torch.bfloat16 else gl.float16
    block = [1, rows, columns]
    layout = gl.NVMMASharedLayout.get_default_for(block, element)
    return TensorDescriptor.from_tensor(tensor_BSHD.flatten(2), block, layout)
