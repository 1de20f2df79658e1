"""Gluon kernel of `matmul`: one warp loads by TMA into a ring with mbarriers, two warpgroups multiply by asynchronous wgmma.

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

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.tensor_map import require_pitch
from kernelviz.ops.matmul.triton import limits

CONSUMER_REGISTERS = 240
PRODUCER_REGISTERS = 24
LAUNCH_REGISTERS = 168
"""Registers per thread: at launch for 3 warpgroups (65,536 / 384, rounded down to a multiple of 8), and after setmaxnreg."""


@gluon.jit
def _tile_position(tile, tiles_m, tiles_n, GROUP: gl.constexpr):
    """Row and column of a tile: GROUP rows of tiles are traversed column by column, so that both factors are in L2."""
    group = tile // (GROUP * tiles_n)
    rows_in_group = gl.minimum(tiles_m - group * GROUP, GROUP)
    within = tile % (GROUP * tiles_n)
    return group * GROUP + within % rows_in_group, within // rows_in_group


@gluon.jit
def _load_tiles(a, b, a_ring, b_ring, full, empty, m, n, k, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr,
                STAGES: gl.constexpr, GROUP: gl.constexpr):  # fmt: skip
    """The warp that loads: it waits until a slot of the ring is empty, and lets TMA fill it."""
    tiles_m = gl.cdiv(m, BM)
    tiles_n = gl.cdiv(n, BN)
    slot = 0
    phase = 1  # of a new mbarrier, the phase before the first counts as complete
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = _tile_position(tile, tiles_m, tiles_n, GROUP)
        for step in range(gl.cdiv(k, BK)):
            mbarrier.wait(empty.index(slot), phase)
            mbarrier.expect(full.index(slot), (BM * BK + BK * BN) * 2)
            tma.async_copy_global_to_shared(a, [tile_m * BM, step * BK], full.index(slot), a_ring.index(slot))
            tma.async_copy_global_to_shared(b, [step * BK, tile_n * BN], full.index(slot), b_ring.index(slot))
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
def _store_part(c, c_buffers, part, row, column, NUMBER: gl.constexpr, BUFFERS: gl.constexpr):
    """Part NUMBER of a tile of the product to global memory; its buffer is free once the store BUFFERS parts ago has read it."""
    tma.store_wait(BUFFERS - 1)
    buffer = c_buffers.index(NUMBER % BUFFERS)
    buffer.store(part.to(c.dtype))
    fence_async_shared()
    tma.async_copy_shared_to_global(c, [row, column], buffer)


@gluon.jit
def _halves(part, ROWS: gl.constexpr, COLUMNS: gl.constexpr):
    return part.reshape((ROWS, 2, COLUMNS // 2)).permute((0, 2, 1)).split()


@gluon.jit
def _multiply_tiles(c, a_ring, b_ring, c_buffers, full, empty, ahead, m, n, k, BM: gl.constexpr, BN: gl.constexpr,
                    BK: gl.constexpr, STAGES: gl.constexpr, GROUP: gl.constexpr, PARTS: gl.constexpr,
                    BUFFERS: gl.constexpr, LEAD: gl.constexpr, FIRST: gl.constexpr):  # fmt: skip
    """A warpgroup that multiplies: rows FIRST to FIRST + BM/2 of each tile. It always has one wgmma group in flight.

    The second warpgroup begins LEAD steps after the first: while one stores its product, the other then uses the tensor cores.
    """
    ROWS: gl.constexpr = BM // 2
    layout: gl.constexpr = gl.NVMMADistributedLayout(version=[3, 0], warps_per_cta=[4, 1], instr_shape=[16, BN, 16])
    tiles_m = gl.cdiv(m, BM)
    tiles_n = gl.cdiv(n, BN)
    steps = gl.cdiv(k, BK)
    slot = 0
    phase = 0
    acc = gl.zeros((ROWS, BN), gl.float32, layout)
    if LEAD > 0 and FIRST > 0:
        mbarrier.wait(ahead.index(0), 0)
    for tile in range(gl.program_id(0), tiles_m * tiles_n, gl.num_programs(0)):
        tile_m, tile_n = _tile_position(tile, tiles_m, tiles_n, GROUP)
        for step in range(steps):
            mbarrier.wait(full.index(slot), phase)
            acc = warpgroup_mma(
                a_ring.index(slot).slice(FIRST, ROWS, dim=0), b_ring.index(slot), acc, use_acc=step > 0, is_async=True
            )
            acc = warpgroup_mma_wait(num_outstanding=1, deps=(acc,))  # the product before this one is complete
            mbarrier.arrive(empty.index(_slot_before(slot, STAGES)), count=1, pred=step > 0)
            if LEAD > 0 and FIRST == 0:
                started = (tile == gl.program_id(0)) & (step == gl.minimum(steps, LEAD) - 1)
                mbarrier.arrive(ahead.index(0), count=1, pred=started)
            slot += 1
            phase = gl.where(slot == STAGES, phase ^ 1, phase)
            slot = gl.where(slot == STAGES, 0, slot)
        acc = warpgroup_mma_wait(num_outstanding=0, deps=(acc,))
        mbarrier.arrive(empty.index(_slot_before(slot, STAGES)), count=1)
        row = tile_m * BM + FIRST
        column = tile_n * BN
        if PARTS == 1:
            _store_part(c, c_buffers, acc, row, column, 0, BUFFERS)
        else:
            left, right = _halves(acc, ROWS, BN)
            if PARTS == 2:
                _store_part(c, c_buffers, left, row, column, 0, BUFFERS)
                _store_part(c, c_buffers, right, row, column + BN // 2, 1, BUFFERS)
            else:
                first, second = _halves(left, ROWS, BN // 2)
                third, fourth = _halves(right, ROWS, BN // 2)
                _store_part(c, c_buffers, first, row, column, 0, BUFFERS)
                _store_part(c, c_buffers, second, row, column + BN // 4, 1, BUFFERS)
                _store_part(c, c_buffers, third, row, column + BN // 2, 2, BUFFERS)
                _store_part(c, c_buffers, fourth, row, column + 3 * (BN // 4), 3, BUFFERS)
    tma.store_wait(0)


@gluon.jit
def gluon_kernel(a, b, c, m, n, k, BM: gl.constexpr, BN: gl.constexpr, BK: gl.constexpr, STAGES: gl.constexpr,
                 GROUP: gl.constexpr, PARTS: gl.constexpr, BUFFERS: gl.constexpr, LEAD: gl.constexpr,
                 PRODUCER: gl.constexpr, CONSUMER: gl.constexpr):  # fmt: skip
    a_ring = gl.allocate_shared_memory(a.dtype, [STAGES, BM, BK], a.layout)
    b_ring = gl.allocate_shared_memory(b.dtype, [STAGES, BK, BN], b.layout)
    HALF: gl.constexpr = BM // 2
    upper = gl.allocate_shared_memory(c.dtype, [BUFFERS, HALF, BN // PARTS], c.layout)
    lower = gl.allocate_shared_memory(c.dtype, [BUFFERS, HALF, BN // PARTS], c.layout)
    full = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    empty = gl.allocate_shared_memory(gl.int64, [STAGES, 1], mbarrier.MBarrierLayout())
    ahead = gl.allocate_shared_memory(gl.int64, [1, 1], mbarrier.MBarrierLayout())
    for slot in gl.static_range(STAGES):
        mbarrier.init(full.index(slot), count=1)
        mbarrier.init(empty.index(slot), count=2)
    mbarrier.init(ahead.index(0), count=1)
    fence_async_shared()
    gl.warp_specialize(
        [
            (_multiply_tiles, (c, a_ring, b_ring, upper, full, empty, ahead, m, n, k, BM, BN, BK, STAGES, GROUP, PARTS,
                               BUFFERS, LEAD, 0)),
            (_multiply_tiles, (c, a_ring, b_ring, lower, full, empty, ahead, m, n, k, BM, BN, BK, STAGES, GROUP, PARTS,
                               BUFFERS, LEAD, HALF)),
            (_load_tiles, (a, b, a_ring, b_ring, full, empty, m, n, k, BM, BN, BK, STAGES, GROUP)),
        ],
        [4, 1],
        [CONSUMER, PRODUCER],
    )  # fmt: skip


def bind_warp_specialised(
    a_MK: torch.Tensor,
    b_KN: torch.Tensor,
    *,
    tile_m: int,
    tile_n: int,
    tile_k: int,
    stages: int,
    group: int,
    parts: int,
    buffers: int,
    lead: int,
) -> Launch:
    """Launch of `gluon_kernel`, one program for each SM, over contiguous matrices (M, K) and (K, N) of 16-bit floats.

    `parts`: stores of a tile of the product by each warpgroup, 1, 2 or 4, through so many `buffers`. `lead`: steps by which the
    first warpgroup is ahead. Raises BadField for matrices that are not contiguous, and for rows that TMA cannot address.
    """
    require_contiguous(a_MK=a_MK, b_KN=b_KN)
    (m, k), n = a_MK.shape, b_KN.shape[1]
    require_pitch("k", k, a_MK.element_size())
    require_pitch("n", n, a_MK.element_size())
    c_MN = torch.empty((m, n), dtype=a_MK.dtype, device=a_MK.device)
    programs, _ = limits(a_MK.device)
    grid = (min(programs, -(-m // tile_m) * -(-n // tile_n)),)
    a = _descriptor(a_MK, tile_m, tile_k)
    b = _descriptor(b_KN, tile_k, tile_n)
    c = _descriptor(c_MN, tile_m // 2, tile_n // parts)

    def launch() -> torch.Tensor:
        gluon_kernel[grid](
            a,
            b,
            c,
            m,
            n,
            k,
            BM=tile_m,
            BN=tile_n,
            BK=tile_k,
            STAGES=stages,
            GROUP=group,
            PARTS=parts,
            BUFFERS=buffers,
            LEAD=lead,
            PRODUCER=PRODUCER_REGISTERS,
            CONSUMER=CONSUMER_REGISTERS,
            num_warps=4,
            maxnreg=LAUNCH_REGISTERS,
        )
        return c_MN

    return launch


def _descriptor(matrix: torch.Tensor, rows: int, columns: int) -> TensorDescriptor:
    """A tensor map of a matrix in blocks of rows × columns, swizzled as wgmma reads them; the launch passes it by value."""
    element = gl.bfloat16 if matrix.dtype == torch.bfloat16 else gl.float16
    block = [rows, columns]
    return TensorDescriptor.from_tensor(matrix, block, gl.NVMMASharedLayout.get_default_for(block, element))
