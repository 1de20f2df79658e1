"""Theoretical occupancy: the share of a multiprocessor's warps that a kernel can keep resident, and what limits it.

Limits a multiprocessor (SM): NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 7.5 to
12.x from version 13.1 (table 27), 6.x and 7.0 from version 12.9, the last one that lists them; the same in NVIDIA's CCCL
(cuda/__device/arch_traits.h). The granularity of registers and shared memory: NVIDIA, CUDA Occupancy Calculator
(cuda_occupancy.h of the toolkit 13.0), with which a test compares every listed architecture. An architecture that is not
listed has no occupancy here, because it would be a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType
from typing import Literal

from kernelviz.core import Device, Kernel

WARP_THREADS = 32
_REGISTERS = 64 * 1024
"""32-bit registers of an SM, equal on every listed architecture."""
_REGISTER_STEP = 256
"""A warp gets registers in multiples of this."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one SM. `reserved_bytes`: shared memory that CUDA reserves in each block. `partitions`: the registers of a
    warp are in one of so many parts of the SM."""

    blocks: int
    warps: int
    shared_bytes: int
    reserved_bytes: int
    shared_step_bytes: int
    partitions: int


def _limits(
    blocks: int, warps: int, shared_kib: int, reserved_kib: int = 1, step_bytes: int = 128, partitions: int = 4
) -> Limits:
    return Limits(blocks, warps, shared_kib * 1024, reserved_kib * 1024, step_bytes, partitions)


LIMITS: Mapping[tuple[int, int], Limits] = MappingProxyType(
    {
        (6, 0): _limits(32, 64, 64, 0, 256, 2),
        (6, 1): _limits(32, 64, 96, 0, 256),
        (7, 0): _limits(32, 64, 96, 0, 256),
        (7, 5): _limits(16, 32, 64, 0, 256),
        (8, 0): _limits(32, 64, 164),
        (8, 6): _limits(16, 48, 100),
        (8, 7): _limits(16, 48, 164),
        (8, 9): _limits(24, 48, 100),
        (9, 0): _limits(32, 64, 228),
        (10, 0): _limits(32, 64, 228),
        (10, 3): _limits(32, 64, 228),
        (11, 0): _limits(24, 48, 228),
        (12, 0): _limits(24, 48, 100),
        (12, 1): _limits(24, 48, 100),
    }
)
"""By compute capability."""


ResidencyLimitKind = Literal["threads", "blocks", "registers", "shared_memory"]


@dataclass(frozen=True, slots=True)
class ResidencyLimit:
    """What allows no more resident blocks: threads a block, blocks an SM, registers a thread, or KiB of shared memory a block."""

    kind: ResidencyLimitKind
    amount: float


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`fraction` of the SM's warps that can be resident, with `blocks` of the kernel at once. `waves`: how many times the grid
    fills the whole GPU; None if the number of SMs is unknown."""

    fraction: float
    blocks: int
    limited_by: ResidencyLimit
    waves: float | None


def occupancy(kernel: Kernel, device: Device) -> Occupancy | None:
    """None if the architecture is not listed, or if the block, registers or shared memory of the kernel are unknown.

    `shared_memory_bytes` is static and dynamic together, as CUPTI reports them.

    >>> h200 = Device(id="cuda:0", kind="cuda", name="H200", uuid="", compute_capability=(9, 0), multiprocessors=132)
    >>> def kernel(**how): return Kernel(name="k", grid=(264, 1, 1), block=(256, 1, 1), **how)
    >>> occupancy(kernel(registers_per_thread=128, shared_memory_bytes=0), h200)
    Occupancy(fraction=0.25, blocks=2, limited_by=ResidencyLimit(kind='registers', amount=128), waves=1.0)
    >>> occupancy(kernel(registers_per_thread=16, shared_memory_bytes=100 * 1024), h200).limited_by
    ResidencyLimit(kind='shared_memory', amount=100.0)
    """
    limits = LIMITS.get(device.compute_capability) if device.compute_capability else None
    registers, shared_bytes, block = kernel.registers_per_thread, kernel.shared_memory_bytes, kernel.block
    if limits is None or registers is None or shared_bytes is None or block is None or prod(block) < 1:
        return None
    warps = -(-prod(block) // WARP_THREADS)
    allowed = {
        ResidencyLimit("threads", prod(block)): limits.warps // warps,
        ResidencyLimit("blocks", limits.blocks): limits.blocks,
        ResidencyLimit("registers", registers): _by_registers(registers, warps, limits.partitions),
        ResidencyLimit("shared_memory", shared_bytes / 1024): _by_shared_memory(shared_bytes, limits),
    }
    limit, blocks = min(allowed.items(), key=lambda pair: pair[1])
    resident = blocks * (device.multiprocessors or 0)
    waves = prod(kernel.grid) / resident if kernel.grid and resident else None
    return Occupancy(blocks * warps / limits.warps, blocks, limit, waves)


def _by_registers(registers: int, warps: int, partitions: int) -> int:
    """Blocks of so many warps whose registers fit."""
    a_warp = max(-(-registers * WARP_THREADS // _REGISTER_STEP), 1) * _REGISTER_STEP
    return _REGISTERS // partitions // a_warp * partitions // warps


def _by_shared_memory(shared_bytes: int, limits: Limits) -> int:
    """Blocks whose shared memory fits into the largest part of the SM's memory that can be shared."""
    step = limits.shared_step_bytes
    block_bytes = -(-(shared_bytes + limits.reserved_bytes) // step) * step
    return limits.shared_bytes // block_bytes if block_bytes else limits.shared_bytes
