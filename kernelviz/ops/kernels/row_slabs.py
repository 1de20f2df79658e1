"""Slabs of `headers/slab_rows.cuh`: how many rows a block copies into shared memory, and how many threads share one there."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SLAB_BYTES = 16 * 1024
"""Of all inputs of a block that copies one slab. Eight blocks of 256 threads an SM then have 128 KiB of loads in flight."""
SMALLEST_SLAB_BYTES = 4 * 1024
"""One vector a thread, where there are too few rows to give each SM several slabs of 16 KiB."""
SLABS_PER_MULTIPROCESSOR = 4
THREADS = 256
LONGEST_ROW_BYTES = 2048
"""A warp a row has one 16-byte vector a thread at 512 bytes; kernels that keep a row in registers read longer rows as fast."""
BANKS_BYTES = 128
"""Of one access of a warp to shared memory without a conflict."""
MOST_REDUCED_ELEMENTS = 32
"""Of a row and thread, where a warp need not have more, of rows that are only reduced."""
REGISTERS, MOST_REGISTERS = 32, 128
"""Of a thread beside those with elements of a row, and all of them."""
REGISTERS_OF_MULTIPROCESSOR = 65536
SHARED_BYTES = 227 * 1024
"""Of an SM of sm_90, of which each block takes 1 KiB beside its own."""
OPT_IN_BYTES = 48 * 1024
"""A kernel must opt in to more dynamic shared memory of a block."""
BARRIER_BYTES = 8
SMALLEST_STAGE_BYTES = 2 * 1024
"""A bulk copy of 2 KiB a block is the fastest of an H200's copies (`copy`'s cuda_bulk)."""
FEWEST_ROUNDS, BYTES_OF_ROUNDS = 4, 4 * 1024
"""Slabs of a persistent block, where they are not smaller than that, so that copies overlap with what is computed."""


@dataclass(frozen=True, slots=True)
class VeryShort:
    """Which rows a thread loads straight into registers: those that begin within 16-byte vectors, if the fewest rows that are
    together whole vectors are at most `vectors`; and rows of whole vectors of at most `row_bytes`, of which a thread has one
    vector of each of `rows` rows; of at most `reduced_row_bytes` where rows are only reduced. A thread has twice as many rows
    that begin within vectors where it then has at most `pair` vectors of a tensor, or `vectors` where rows are only reduced."""

    vectors: int = 4
    row_bytes: int = 128
    reduced_row_bytes: int = 128
    rows: int = 4
    pair: int = 1


@dataclass(frozen=True, slots=True)
class SlabRing:
    """How slabs pass through shared memory: threads of a block, slabs of it in shared memory, bytes of all inputs of a slab.

    `elements`: of a row that a thread keeps in registers, where a warp need not keep more. `resident`: threads an SM that
    registers must allow where a thread keeps few. One stage: each block has one slab and ends, so that loads are in flight only
    by other blocks. `bulk`: slabs are copied by bulk copies, else through registers. `very_short`: which rows stay in registers
    instead.
    """

    threads: int
    stages: int
    slab_bytes: int
    elements: int = 24
    resident: int = 1024
    bulk: bool = True
    very_short: VeryShort | None = None


ONE_SLAB = SlabRing(THREADS, 1, SLAB_BYTES, elements=16, resident=2048, bulk=False)
RING = SlabRing(threads=128, stages=3, slab_bytes=8 * 1024, very_short=VeryShort())
"""Eight blocks an SM have 128 KiB in flight while each processes a slab."""


@dataclass(frozen=True, slots=True)
class RegisterArrays:
    """Arrays of as many elements as a thread has of a row that it keeps in registers: as fp32 numbers, and as stored."""

    numbers: int = 0
    stored: int = 0

    def registers(self, units: int, unit_bytes: int, itemsize_bytes: int) -> int:
        """An estimate of those of a thread, in eights.

        >>> RegisterArrays().registers(7, 8, 2), RegisterArrays(1, 2).registers(10, 4, 2)
        (32, 80)
        """
        numbers = self.numbers * units * (unit_bytes // itemsize_bytes)
        stored = self.stored * units * max(1, unit_bytes // 4)
        return min(MOST_REGISTERS, -(-(REGISTERS + (numbers + stored) * 9 // 8) // 8) * 8)


REDUCED = RegisterArrays()


@dataclass(frozen=True, slots=True)
class RowSlab:
    """Rows of a block, threads that share a row, bytes of an access to shared memory, accesses of a thread and row, bytes of
    shared memory of a tensor, tensors, registers; `full`: each thread has as many accesses; `in_registers`: rows of a thread
    that has them there, or 0."""

    rows: int
    lanes: int
    unit_bytes: int
    units: int
    tensor_bytes: int
    tensors: int = 1
    full: bool = True
    registers: int = REGISTERS
    ring: SlabRing = ONE_SLAB
    in_registers: int = 0

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block."""
        if self.in_registers:
            return 0
        barriers_bytes = BARRIER_BYTES * self.ring.stages if self.ring.bulk else 0
        return self.ring.stages * self.tensors * self.tensor_bytes + barriers_bytes

    @property
    def opt_in_bytes(self) -> int:
        """Dynamic shared memory to opt in for (`nvrtc.kernel`): as much for all rows, because the same kernel, for which the
        last opt-in counts, has slabs of several sizes."""
        if self.shared_bytes <= OPT_IN_BYTES:
            return 0
        stage_bytes = max(2 * 8 * LONGEST_ROW_BYTES, 3 * self.ring.slab_bytes // 2)
        return self.ring.stages * (stage_bytes + BARRIER_BYTES)

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """Macros that a kernel is compiled with for rows of this matrix."""
        resident = min(self.ring.resident, REGISTERS_OF_MULTIPROCESSOR // self.registers)
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "SLAB_UNIT": str(self.unit_bytes),
            "SLAB_LANES": str(self.lanes),
            "SLAB_UNITS": str(self.units),
            "SLAB_FULL": str(int(self.full)),
            "SLAB_THREADS": str(self.ring.threads),
            "SLAB_STAGES": str(self.ring.stages),
            "SLAB_BULK": str(int(self.ring.bulk)),
            "SLAB_ROWS": str(self.in_registers),
            "SLAB_BLOCKS": str(max(1, resident // self.ring.threads)),
        }

    def balanced(self, m: int, row_bytes: int, blocks: int) -> RowSlab:
        """With no more rows than these, so that as many persistent blocks have as many slabs each, if possible several.

        >>> slab = RowSlab(rows=32, lanes=4, unit_bytes=8, units=7, tensor_bytes=6400, ring=RING)
        >>> slab.balanced(500_000, 200, 1056).rows, slab.balanced(20_000, 200, 1056).rows
        (32, 20)
        """
        whole = VEC16_BYTES // math.gcd(VEC16_BYTES, row_bytes)
        at_once = self.ring.threads // self.lanes
        share_bytes = m * row_bytes * self.tensors // blocks
        several = min(FEWEST_ROUNDS, share_bytes // BYTES_OF_ROUNDS)
        rounds = max(-(-m // (blocks * self.rows)), several, 1)
        rows = -(-m // (blocks * rounds))
        smallest = SMALLEST_STAGE_BYTES // (row_bytes * self.tensors)
        step = max(whole, at_once) if max(rows, smallest) > at_once else whole
        rows = min(self.rows, -(-max(rows, smallest, 1) // step) * step)
        return replace(self, rows=rows, tensor_bytes=_whole_vectors_bytes(rows * row_bytes))


def row_slab(
    m: int,
    n: int,
    itemsize_bytes: int,
    count: int,
    *,
    tensors: int = 1,
    ring: SlabRing = ONE_SLAB,
    arrays: RegisterArrays = REDUCED,
) -> RowSlab | None:
    """The slab for m rows of n elements, of which a kernel keeps so many tensors, on a GPU of `count` SMs; None where a row is
    longer than 2 KiB.

    A slab is whole 16-byte vectors. Threads that read consecutive units of one row have no bank conflict, and rows do not
    conflict if they lie an odd multiple of their threads' bytes apart: so a row has as many threads as the largest power of two
    that divides its units, up to a warp's access. It has more where a slab would have fewer rows than threads, and where a
    thread would have more elements than it keeps in registers.

    >>> slab = row_slab(500_000, 100, 2, 132)
    >>> slab.rows, slab.lanes, slab.unit_bytes, slab.units, slab.tensor_bytes
    (80, 4, 8, 7, 16000)
    >>> [(s.rows, s.lanes, s.tensor_bytes) for s in (row_slab(1_000_000, 128, 2, 132), row_slab(10_000, 8, 2, 132))]
    [(64, 8, 16384), (256, 1, 4096)]
    >>> row_slab(1_000_000, 21, 2, 132, tensors=2, ring=RING).rows
    128
    >>> row_slab(1000, 1025, 2, 132)
    """
    row_bytes = n * itemsize_bytes
    if row_bytes > LONGEST_ROW_BYTES:
        return None
    slab_bytes = ring.slab_bytes
    if not ring.bulk:
        share_bytes = m * row_bytes * tensors // (SLABS_PER_MULTIPROCESSOR * count)
        slab_bytes = max(SMALLEST_SLAB_BYTES, min(slab_bytes, share_bytes))
    unit_bytes = math.gcd(VEC16_BYTES, row_bytes)
    whole = VEC16_BYTES // unit_bytes
    rows = max(1, slab_bytes // (tensors * row_bytes * whole)) * whole
    units, width = row_bytes // unit_bytes, unit_bytes // itemsize_bytes
    lanes = math.gcd(units, BANKS_BYTES // unit_bytes, 32)
    most_elements = ring.elements if arrays.numbers + arrays.stored else MOST_REDUCED_ELEMENTS
    while lanes < min(32, units) and (rows * lanes < ring.threads or -(-units // lanes) * width > most_elements):
        lanes *= 2
    if ring.bulk and rows > ring.threads // lanes:
        # Each thread has as many rows.
        step = max(whole, ring.threads // lanes)
        rows = max(1, (rows + step // 2) // step) * step
    return RowSlab(
        rows,
        lanes,
        unit_bytes,
        -(-units // lanes),
        _whole_vectors_bytes(rows * row_bytes),
        tensors,
        units % lanes == 0,
        arrays.registers(-(-units // lanes), unit_bytes, itemsize_bytes),
        ring,
    )


def rows_in_registers(
    n: int,
    itemsize_bytes: int,
    *,
    tensors: int = 1,
    ring: SlabRing = ONE_SLAB,
    arrays: RegisterArrays = REDUCED,
) -> RowSlab | None:
    """Very short rows in registers, without shared memory (`slab_registers.cuh`); None for longer rows.

    >>> slabs = [rows_in_registers(n, 2, ring=RING) for n in (2, 3, 10, 64, 21)]
    >>> [slab and (slab.in_registers, slab.lanes, slab.unit_bytes, slab.units, slab.rows) for slab in slabs]
    [(8, 1, 4, 1, 1024), (8, 1, 2, 3, 1024), None, (4, 8, 16, 1, 64), None]
    """
    short, row_bytes = ring.very_short, n * itemsize_bytes
    if short is None:
        return None
    unit_bytes = math.gcd(VEC16_BYTES, row_bytes)
    units, rows, lanes = row_bytes // unit_bytes, VEC16_BYTES // unit_bytes, 1
    if unit_bytes == VEC16_BYTES:
        longest_bytes = short.reduced_row_bytes if arrays == REDUCED else short.row_bytes
        lanes = 1 << (units - 1).bit_length()
        if row_bytes > longest_bytes or lanes > 32 or 4 * units < 3 * lanes:
            return None
        full, units, rows = lanes == units, 1, max(1, short.rows // tensors)
    else:
        vectors, full = rows * row_bytes // VEC16_BYTES, True
        if vectors > short.vectors:
            return None
        if 2 * vectors <= (short.vectors if arrays == REDUCED else short.pair):
            # Two vectors in flight, and results of twice the bytes.
            rows *= 2
    registers = arrays.registers(units, unit_bytes, itemsize_bytes)
    registers += 4 * tensors * rows * units * unit_bytes // VEC16_BYTES
    return RowSlab(
        rows * ring.threads // lanes,
        lanes,
        unit_bytes,
        units,
        0,
        tensors,
        full,
        min(MOST_REGISTERS, -(-registers // 8) * 8),
        ring,
        rows,
    )


def _whole_vectors_bytes(size_bytes: int) -> int:
    return -(-size_bytes // VEC16_BYTES) * VEC16_BYTES


@dataclass(frozen=True, slots=True)
class SlabKernel:
    """A kernel compiled for the rows of a matrix, its slab, and the blocks of its launch."""

    kernel: Any
    slab: RowSlab
    blocks: int
    numbers: tuple[Any, ...]
    """The last arguments of a kernel: rows of a slab and bytes of shared memory of a tensor of it."""

    def launch(self, *arguments: Any) -> None:
        """Enqueue the kernel with its other arguments."""
        nvrtc.launch(
            self.kernel,
            self.blocks,
            self.slab.ring.threads,
            *arguments,
            *self.numbers,
            shared_bytes=self.slab.shared_bytes,
        )


def slab_kernel(
    source: Path,
    name: str,
    x_MN: Tensor,
    *,
    defines: dict[str, str] | None = None,
    tensors: int = 1,
    ring: SlabRing = ONE_SLAB,
    arrays: RegisterArrays = REDUCED,
) -> SlabKernel | None:
    """The kernel of this name for the rows of a matrix; None where they are longer than 2 KiB."""
    m, n = x_MN.shape
    count, itemsize_bytes = multiprocessors(x_MN.device), x_MN.element_size()
    slab = rows_in_registers(n, itemsize_bytes, tensors=tensors, ring=ring, arrays=arrays)
    slab = slab or row_slab(m, n, itemsize_bytes, count, tensors=tensors, ring=ring, arrays=arrays)
    if slab is None:
        return None
    kernel = nvrtc.kernel(source, name, (defines or {}) | slab.defines(x_MN), shared_bytes=slab.opt_in_bytes)
    resident = m
    if ring.stages > 1 and not slab.in_registers:
        resident = nvrtc.resident(kernel, ring.threads, shared_bytes=slab.shared_bytes)
        slab = slab.balanced(m, n * itemsize_bytes, resident)
    blocks = min(resident, -(-m // slab.rows))
    return SlabKernel(kernel, slab, blocks, (ctypes.c_int(slab.rows), ctypes.c_int(slab.tensor_bytes)))
