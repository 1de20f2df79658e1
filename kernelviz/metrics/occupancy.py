"""Theoretical occupancy: how many of a multiprocessor's warps a kernel can keep resident, and what allows no more.

Limits a multiprocessor (SM): NVIDIA, CUDA C++ Programming Guide, "Technical Specifications per Compute Capability": 7.5 to
12.x from version 13.1 (table 27), 6.x and 7.0 from version 12.9, the last one that lists them; the same in NVIDIA's CCCL
(cuda/__device/arch_traits.h). In what steps registers and shared memory are given out: NVIDIA, CUDA Occupancy Calculator
(cuda_occupancy.h of the toolkit 13.0), against which a test holds every listed architecture. One that is not listed has no
occupancy here: nothing is a guess.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from types import MappingProxyType

from kernelviz.core import Device, Kernel

WARP_THREADS = 32
_REGISTERS = 64 * 1024
"""32-bit registers of an SM, equal on every listed architecture."""
_REGISTER_STEP = 256
"""Registers are given to a warp in multiples of this."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one SM holds at most. `reserved_bytes`: shared memory that CUDA takes for itself in each block. `partitions`: a
    warp's registers lie in one of these parts of the SM."""

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


@dataclass(frozen=True, slots=True)
class Occupancy:
    """`fraction` of the SM's warps that can be resident, by `blocks` of the kernel at once. `limited_by`: what allows no more,
    in words. `waves`: how often the whole GPU is filled by the grid; None where the number of SMs is unknown."""

    fraction: float
    blocks: int
    limited_by: str
    waves: float | None


def occupancy(kernel: Kernel, device: Device) -> Occupancy | None:
    """None where the architecture is not listed or the tracer did not tell the kernel's block, registers or shared memory.

    `shared_memory_bytes` is static and dynamic together, as CUPTI reports them.

    >>> h200 = Device(id="cuda:0", kind="cuda", name="H200", uuid="", compute_capability=(9, 0), multiprocessors=132)
    >>> def kernel(**how): return Kernel(name="k", grid=(264, 1, 1), block=(256, 1, 1), **how)
    >>> found = occupancy(kernel(registers_per_thread=128, shared_memory_bytes=0), h200)
    >>> found.fraction, found.blocks, found.limited_by, found.waves
    (0.25, 2, '128 registers a thread', 1.0)
    >>> occupancy(kernel(registers_per_thread=16, shared_memory_bytes=100 * 1024), h200).limited_by
    '100 KiB of shared memory a block'
    """
    limits = LIMITS.get(device.compute_capability) if device.compute_capability else None
    registers, shared_bytes, block = kernel.registers_per_thread, kernel.shared_memory_bytes, kernel.block
    if limits is None or registers is None or shared_bytes is None or block is None or prod(block) < 1:
        return None
    warps = -(-prod(block) // WARP_THREADS)
    allowed = [
        (limits.warps // warps, f"{prod(block):,} threads a block"),
        (limits.blocks, f"{limits.blocks} blocks an SM"),
        (_by_registers(registers, warps, limits.partitions), f"{registers} registers a thread"),
        (_by_shared_memory(shared_bytes, limits), f"{shared_bytes / 1024:.0f} KiB of shared memory a block"),
    ]
    blocks, why = min(allowed, key=lambda pair: pair[0])
    waves = (
        prod(kernel.grid) / (blocks * device.multiprocessors)
        if kernel.grid and device.multiprocessors and blocks
        else None
    )
    return Occupancy(blocks * warps / limits.warps, blocks, why, waves)


def _by_registers(registers: int, warps: int, partitions: int) -> int:
    """Blocks of so many warps whose registers fit."""
    a_warp = max(-(-registers * WARP_THREADS // _REGISTER_STEP), 1) * _REGISTER_STEP
    return _REGISTERS // partitions // a_warp * partitions // warps


def _by_shared_memory(shared_bytes: int, limits: Limits) -> int:
    """Blocks whose shared memory fits into the largest part of the SM's memory that can be shared."""
    step = limits.shared_step_bytes
    taken = -(-(shared_bytes + limits.reserved_bytes) // step) * step
    return limits.shared_bytes // taken if taken else limits.shared_bytes
