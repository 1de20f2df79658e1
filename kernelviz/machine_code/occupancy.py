"""Occupancy of a kernel from its resources and the limits of a compute capability; waves of a grid on a device.

Limits: CUDA Programming Guide, "Compute Capabilities", tables "Technical Specifications" and "Memory Information per Compute
Capability" (version 13). Rules of allocation: NVIDIA's cuda_occupancy.h, which the toolkit ships. Registers are allocated to
warps in units of 256, in four partitions of a multiprocessor. Shared memory is allocated to blocks in units of 128 bytes, and the
system takes 1024 bytes for each block from compute capability 8.0 on.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelviz.core.errors import BadField
from kernelviz.core.machine_code import (
    RESERVED_SHARED_BYTES,
    KernelFacts,
    Occupancy,
    OccupancyLimit,
    Waves,
    architecture_number,
)

WARP_THREADS = 32
REGISTERS_PER_SM = 65_536
REGISTER_UNIT = 256
PARTITIONS = 4
SHARED_UNIT_BYTES = 128
_KIB = 1024


@dataclass(frozen=True, slots=True)
class Limits:
    """What a multiprocessor holds at most."""

    threads: int
    blocks: int
    shared_bytes: int
    shared_bytes_per_block: int


LIMITS: dict[int, Limits] = {
    80: Limits(2048, 32, 164 * _KIB, 163 * _KIB),
    86: Limits(1536, 16, 100 * _KIB, 99 * _KIB),
    87: Limits(1536, 16, 164 * _KIB, 163 * _KIB),
    89: Limits(1536, 24, 100 * _KIB, 99 * _KIB),
    90: Limits(2048, 32, 228 * _KIB, 227 * _KIB),
    100: Limits(2048, 32, 228 * _KIB, 227 * _KIB),
    103: Limits(2048, 32, 228 * _KIB, 227 * _KIB),
    120: Limits(1536, 24, 100 * _KIB, 99 * _KIB),
    121: Limits(1536, 24, 100 * _KIB, 99 * _KIB),
}
"""By compute capability times ten."""


def occupancy(facts: KernelFacts, threads: int, dynamic_shared_bytes: int = 0) -> Occupancy | None:
    """Blocks of a kernel that a multiprocessor of the kernel's architecture holds at once, with `threads` in a block.

    None where the registers of the kernel or the limits of the architecture are not known. Raises BadField for a number of
    threads that no block can have.

    >>> from kernelviz.core.machine_code import CodeFacts
    >>> none = CodeFacts(instructions=0, classes={})
    >>> facts = KernelFacts(name="k", architecture="sm_90a", registers=168, code_bytes=0, whole=none, roles=())
    >>> found = occupancy(facts, 384, 200_000)
    >>> found.blocks, found.warps, found.fraction, found.limited_by
    (1, 12, 0.1875, ('registers', 'shared_memory'))
    """
    if not 1 <= threads <= 1024:
        raise BadField("threads", threads, "give a number from 1 to 1024")
    limits = limits_of(facts.architecture)
    if limits is None or facts.registers is None:
        return None
    warps = -(-threads // WARP_THREADS)
    shared_bytes = facts.own_shared_bytes + dynamic_shared_bytes
    allowed: dict[OccupancyLimit, int] = {
        "threads": limits.threads // (warps * WARP_THREADS),
        "blocks": limits.blocks,
        "registers": _blocks_by_registers(facts.registers, warps, limits),
        "shared_memory": _blocks_by_shared_memory(shared_bytes, limits),
    }
    blocks = min(allowed.values())
    return Occupancy(
        blocks=blocks,
        warps=blocks * warps,
        fraction=blocks * warps / (limits.threads // WARP_THREADS),
        limits=allowed,
        limited_by=tuple(name for name, most in allowed.items() if most == blocks),
    )


def waves(grid_blocks: int, multiprocessors: int, blocks_per_multiprocessor: int) -> Waves:
    """How a grid fills a device, if all blocks take the same time.

    >>> found = waves(512, 132, 1)
    >>> found.full, found.tail_blocks, round(found.tail_fraction, 3), round(found.utilisation, 3)
    (3, 116, 0.879, 0.97)
    """
    for field, value in (
        ("grid", grid_blocks),
        ("multiprocessors", multiprocessors),
        ("blocks", blocks_per_multiprocessor),
    ):
        if value < 1:
            raise BadField(field, value, "give a number of at least 1")
    slots = multiprocessors * blocks_per_multiprocessor
    full, tail = divmod(grid_blocks, slots)
    return Waves(
        blocks_per_wave=slots,
        full=full,
        tail_blocks=tail,
        tail_fraction=tail / slots,
        utilisation=grid_blocks / (slots * math.ceil(grid_blocks / slots)),
    )


def limits_of(architecture: str) -> Limits | None:
    """The limits of an architecture such as ``sm_90a``; None for one that is not in the table."""
    return LIMITS.get(architecture_number(architecture) or 0)


def _blocks_by_registers(registers: int, warps: int, limits: Limits) -> int:
    if registers == 0:
        return limits.blocks
    for_a_warp = _round_up(registers * WARP_THREADS, REGISTER_UNIT)
    resident_warps = REGISTERS_PER_SM // PARTITIONS // for_a_warp * PARTITIONS
    return resident_warps // warps


def _blocks_by_shared_memory(shared_bytes: int, limits: Limits) -> int:
    if shared_bytes > limits.shared_bytes_per_block:
        return 0
    for_a_block = _round_up(shared_bytes + RESERVED_SHARED_BYTES, SHARED_UNIT_BYTES)
    return limits.shared_bytes // for_a_block


def _round_up(value: int, unit: int) -> int:
    return -(-value // unit) * unit
