"""Gluon kernel of `conv2d` and `conv_bias_relu`: tiles are boxes of images, which one warp loads by TMA with zeros as padding.

Written for Gluon of Triton 3.6 and 3.7: arguments that 3.7 renamed are given by position.
"""

from __future__ import annotations

import torch
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

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.convolution.boxes import DEPTHS, choose
from kernelviz.ops.convolution.geometry import geometry_of
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.kernels.tensor_map import require_pitch

CONSUMER_REGISTERS = 240
PRODUCER_REGISTERS = 24
LAUNCH_REGISTERS = 168
"""Registers per thread: at launch for 3 warpgroups (65,536 / 384, rounded down to a multiple of 8), and after setmaxnreg."""
STAGES = 4
PART = 64
"""Filters that are stored at once: 128 bytes of a pixel, the most that TMA swizzles."""


@gluon.jit
def _tile_position(tile, p, q, k, BI: gl.constexpr, BP: gl.constexpr, BQ: gl.constexpr, BN: gl.constexpr):
    """Image, row, column and filter of a tile: all filters of the same pixels, then the next pixels of the same images."""
    tiles_q = gl.cdiv(q, BQ)
    tiles_p = gl.cdiv(p, BP)
    tiles_n = gl.cdiv(k, BN)
    box = tile // tiles_n
    image = box // tiles_q // tiles_p * BI
    return image, box // tiles_q % tiles_p * BP, box % tiles_q * BQ, tile % tiles_n * BN


@gluon.jit
def _load_tiles(x, w, x_ring, w_ring, full, empty, tiles, p, q, k, R: gl.constexpr, S: gl.constexpr,
                BI: gl.constexpr, BP: gl.constexpr, BQ: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
                DEPTHS: gl.constexpr, STAGES: gl.constexpr):  # fmt: skip
    """The warp that loads: it waits until a slot of the ring is empty, and lets TMA fill it."""
    slot = 0
    phase = 1  # of a new mbarrier, the phase before the first counts as complete
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        image, row, column, filter = _tile_position(tile, p, q, k, BI, BP, BQ, BN)
        for step in range(R * R * DEPTHS):
            tap = step // DEPTHS
            channel = step % DEPTHS * BK
            mbarrier.wait(empty.index(slot), phase)
            mbarrier.expect(full.index(slot), (BI * BP * BQ + BN) * BK * 2)
            seen = x_ring.index(slot)._reinterpret(x.dtype, [BI, BP, BQ, BK], x.layout)
            corner = [image, row * S - R // 2 + tap // R, column * S - R // 2 + tap % R, channel]
            tma.async_copy_global_to_shared(x, corner, full.index(slot), seen)
            tma.async_copy_global_to_shared(
                w, [filter, tap * (DEPTHS * BK) + channel], full.index(slot), w_ring.index(slot)
            )
            slot += 1
            phase = gl.where(slot == STAGES, phase ^ 1, phase)
            slot = gl.where(slot == STAGES, 0, slot)


@gluon.jit
def _slot_before(slot, STAGES: gl.constexpr):
    """The slot of the ring before a slot.

    Computed, not remembered from the step before: Triton 3.6 and 3.7 drop a loop-carried variable that is the same value as
    another one where the loop begins, and that the loop sets to that other one.
    """
    return gl.where(slot == 0, STAGES - 1, slot - 1)


@gluon.jit
def _store_part(y, b_ptr, buffer, part, image, row, column, filter, k, HI: gl.constexpr, HP: gl.constexpr,
                HQ: gl.constexpr, PART: gl.constexpr, BIAS_RELU: gl.constexpr):  # fmt: skip
    """PART filters of the pixels of a warpgroup to global memory, through a buffer that the store before this one has read."""
    if BIAS_RELU:
        columns = filter + gl.arange(0, PART, gl.SliceLayout(0, part.type.layout))
        bias = gl.load(b_ptr + columns, mask=columns < k, other=0.0).to(gl.float32)
        z = part + gl.expand_dims(bias, 0)
        part = gl.where(z < 0.0, 0.0, z)  # NaN stays NaN
    tma.store_wait(0)
    buffer.store(part.to(y.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(
        y, [image, row, column, filter], buffer._reinterpret(y.dtype, [HI, HP, HQ, PART], y.layout)
    )


@gluon.jit
def _halves(part, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    return part.reshape((ROWS, 2, COLUMNS // 2)).permute((0, 2, 1)).split()


@gluon.jit
def _multiply_tiles(y, b_ptr, x_ring, w_ring, buffer, full, empty, tiles, p, q, k, R: gl.constexpr, BI: gl.constexpr,
                    BP: gl.constexpr, BQ: gl.constexpr, HI: gl.constexpr, HP: gl.constexpr, HQ: gl.constexpr,
                    BN: gl.constexpr, DEPTHS: gl.constexpr, STAGES: gl.constexpr, PART: gl.constexpr,
                    BIAS_RELU: gl.constexpr, SECOND: gl.constexpr):  # fmt: skip
    """A warpgroup that multiplies: the first or the SECOND half of the pixels of a tile. It has one wgmma group in flight."""
    ROWS: gl.constexpr = HI * HP * HQ
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BN, 16])
    slot = 0
    phase = 0
    acc = gl.zeros((ROWS, BN), gl.float32, layout)
    for tile in range(gl.program_id(0), tiles, gl.num_programs(0)):
        image, row, column, filter = _tile_position(tile, p, q, k, BI, BP, BQ, BN)
        image += SECOND * (BI - HI)
        row += SECOND * (BP - HP)
        column += SECOND * (BQ - HQ)
        for step in range(R * R * DEPTHS):
            mbarrier.wait(full.index(slot), phase)
            seen = x_ring.index(slot).slice(SECOND * ROWS, ROWS, dim=0)
            acc = warpgroup_mma(seen, w_ring.index(slot).permute((1, 0)), acc, use_acc=step > 0, is_async=True)
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))  # the product before this one is complete
            mbarrier.arrive(empty.index(_slot_before(slot, STAGES)), count=1, pred=step > 0)
            slot += 1
            phase = gl.where(slot == STAGES, phase ^ 1, phase)
            slot = gl.where(slot == STAGES, 0, slot)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        mbarrier.arrive(empty.index(_slot_before(slot, STAGES)), count=1)
        if BN == PART:
            _store_part(y, b_ptr, buffer, acc, image, row, column, filter, k, HI, HP, HQ, PART, BIAS_RELU)
        else:
            left, right = _halves(acc, ROWS, BN)
            if BN == 2 * PART:
                _store_part(y, b_ptr, buffer, left, image, row, column, filter, k, HI, HP, HQ, PART, BIAS_RELU)
                _store_part(y, b_ptr, buffer, right, image, row, column, filter + PART, k, HI, HP, HQ, PART, BIAS_RELU)
            else:
                first, second = _halves(left, ROWS, BN // 2)
                third, fourth = _halves(right, ROWS, BN // 2)
                _store_part(y, b_ptr, buffer, first, image, row, column, filter, k, HI, HP, HQ, PART, BIAS_RELU)
                _store_part(y, b_ptr, buffer, second, image, row, column, filter + PART, k, HI, HP, HQ, PART, BIAS_RELU)
                _store_part(
                    y, b_ptr, buffer, third, image, row, column, filter + 2 * PART, k, HI, HP, HQ, PART, BIAS_RELU
                )
                _store_part(
                    y, b_ptr, buffer, fourth, image, row, column, filter + 3 * PART, k, HI, HP, HQ, PART, BIAS_RELU
                )
    tma.store_wait(0)


@gluon.jit
def boxes_kernel(x, w, b_ptr, y, tiles, p, q, k, R: gl.constexpr, S: gl.constexpr, BI: gl.constexpr, BP: gl.constexpr,
                 BQ: gl.constexpr, HI: gl.constexpr, HP: gl.constexpr, HQ: gl.constexpr, BN: gl.constexpr,
                 BK: gl.constexpr, DEPTHS: gl.constexpr, STAGES: gl.constexpr, PART: gl.constexpr,
                 BIAS_RELU: gl.constexpr, PRODUCER: gl.constexpr, CONSUMER: gl.constexpr):  # fmt: skip
    # The same bytes as TMA's boxes of four dimensions, which are swizzled alike: rows of BK channels, of PART filters.
    HALF: gl.constexpr = HI * HP * HQ
    X_LAYOUT: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=2 * BK, element_bitwidth=16, rank=2)
    Y_LAYOUT: gl.constexpr = gl.NVMMASharedLayout(swizzle_byte_width=2 * PART, element_bitwidth=16, rank=2)
    x_ring = gl.allocate_shared_memory(x.dtype, [STAGES, 2 * HALF, BK], X_LAYOUT)
    w_ring = gl.allocate_shared_memory(w.dtype, [STAGES, BN, BK], w.layout)
    upper = gl.allocate_shared_memory(y.dtype, [HALF, PART], Y_LAYOUT)
    lower = gl.allocate_shared_memory(y.dtype, [HALF, PART], Y_LAYOUT)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=2)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_multiply_tiles, (y, b_ptr, x_ring, w_ring, upper, full, empty, tiles, p, q, k, R, BI, BP, BQ, HI, HP, HQ,
                               BN, DEPTHS, STAGES, PART, BIAS_RELU, 0)),
            (_multiply_tiles, (y, b_ptr, x_ring, w_ring, lower, full, empty, tiles, p, q, k, R, BI, BP, BQ, HI, HP, HQ,
                               BN, DEPTHS, STAGES, PART, BIAS_RELU, 1)),
            (_load_tiles, (x, w, x_ring, w_ring, full, empty, tiles, p, q, k, R, S, BI, BP, BQ, BN, BK, DEPTHS, STAGES)),
        ],
        [4, 1],
        [CONSUMER, PRODUCER],
    )  # fmt: skip


def bind_boxes(x_NHWC: torch.Tensor, w_KRRC: torch.Tensor, b_K: torch.Tensor | None, s: int) -> Launch:
    """Launch of `boxes_kernel`, one program for each multiprocessor: x ∗ w, or with a bias max(x ∗ w + b, 0).

    Raises BadField for tensors that are not contiguous, for filters that are no multiple of 16 bytes, and for channels that are
    no multiple of 16, since a step of other channels would read those of the next tap.
    """
    require_contiguous(x_NHWC=x_NHWC, w_KRRC=w_KRRC, **({} if b_K is None else {"b_K": b_K}))
    g = geometry_of(x_NHWC, w_KRRC, s)
    require_pitch("k", g.k, x_NHWC.element_size())
    if g.c % DEPTHS[-1]:
        raise BadField("size c", g.c, f"a step has whole channels of a tap here: give a multiple of {DEPTHS[-1]}")
    processors, _ = limits(x_NHWC.device, without_gpu=MOST_SHARED_BYTES)
    box = choose(g, processors)
    y_NPQK = torch.empty((g.n, g.p, g.q, g.k), dtype=x_NHWC.dtype, device=x_NHWC.device)
    x = _descriptor(x_NHWC, [box.images, box.rows, box.columns, box.depth])
    w = _descriptor(w_KRRC.view(g.k, g.terms), [box.filters, box.depth])
    y = _descriptor(y_NPQK, [*box.half, PART])
    tiles = box.count(g)
    grid = (min(processors, tiles),)

    def launch() -> torch.Tensor:
        boxes_kernel[grid](
            x,
            w,
            b_K,
            y,
            tiles,
            g.p,
            g.q,
            g.k,
            R=g.r,
            S=g.s,
            BI=box.images,
            BP=box.rows,
            BQ=box.columns,
            HI=box.half[0],
            HP=box.half[1],
            HQ=box.half[2],
            BN=box.filters,
            BK=box.depth,
            DEPTHS=g.c // box.depth,
            STAGES=STAGES,
            PART=PART,
            BIAS_RELU=b_K is not None,
            PRODUCER=PRODUCER_REGISTERS,
            CONSUMER=CONSUMER_REGISTERS,
            num_warps=4,
            maxnreg=LAUNCH_REGISTERS,
        )
        return y_NPQK

    return launch


def _descriptor(tensor: torch.Tensor, block: list[int]) -> TensorDescriptor:
    """A tensor map of a tensor in such blocks, swizzled as wgmma reads them; the launch passes it by value."""
    element = gl.bfloat16 if tensor.dtype == torch.bfloat16 else gl.float16
    return TensorDescriptor.from_tensor(tensor, block, gl.NVMMASharedLayout.get_default_for(block, element))
