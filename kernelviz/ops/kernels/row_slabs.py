"""Slabs of `headers/slab_rows.cuh`: how many rows a block copies into shared memory, and how many threads share one there."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.ops.kernels import nvrtc

if TYPE_CHECKING:
    from torch import Tensor

VEC16_BYTES = 16
SLAB_BYTES = 16 * 1024
"""Of all inputs of a block. Eight blocks of 256 threads an SM then have 128 KiB of loads in flight."""
SMALLEST_SLAB_BYTES = 4 * 1024
"""One vector a thread, where there are too few rows to give each SM several slabs of 16 KiB."""
SLABS_PER_MULTIPROCESSOR = 4
THREADS = 256
LONGEST_ROW_BYTES = 2048
"""A warp a row has one 16-byte vector a thread at 512 bytes; kernels that keep a row in registers read longer rows as fast."""
BANKS_BYTES = 128
"""Of one access of a warp to shared memory without a conflict."""


@dataclass(frozen=True, slots=True)
class RowSlab:
    """Rows of a block, threads that share a row, bytes of an access to shared memory, bytes of shared memory of a tensor."""

    rows: int
    lanes: int
    unit_bytes: int
    tensor_bytes: int

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """Macros that a kernel is compiled with for rows of this matrix."""
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "SLAB_UNIT": str(self.unit_bytes),
            "SLAB_LANES": str(self.lanes),
            "SLAB_THREADS": str(THREADS),
        }


def row_slab(m: int, n: int, itemsize_bytes: int, count: int, *, tensors: int = 1) -> RowSlab | None:
    """The slab for m rows of n elements, of which a kernel keeps so many tensors, on a GPU of `count` SMs; None where a row is
    longer than 2 KiB.

    A slab is whole 16-byte vectors. Threads that read consecutive units of one row have no bank conflict, and rows do not
    conflict if they lie an odd multiple of their threads' bytes apart: so a row has as many threads as the largest power of two
    that divides its units, up to a warp's access. It has more where a slab would have fewer rows than threads.

    >>> row_slab(500_000, 100, 2, 132)
    RowSlab(rows=80, lanes=4, unit_bytes=8, tensor_bytes=16000)
    >>> row_slab(1_000_000, 128, 2, 132), row_slab(10_000, 8, 2, 132)
    (RowSlab(rows=64, lanes=8, unit_bytes=16, tensor_bytes=16384), RowSlab(rows=256, lanes=1, unit_bytes=16, tensor_bytes=4096))
    >>> row_slab(1_000_000, 21, 2, 132, tensors=2)
    RowSlab(rows=192, lanes=2, unit_bytes=2, tensor_bytes=8064)
    >>> row_slab(1000, 1025, 2, 132)
    """
    row_bytes = n * itemsize_bytes
    if row_bytes > LONGEST_ROW_BYTES:
        return None
    share_bytes = m * row_bytes * tensors // (SLABS_PER_MULTIPROCESSOR * count)
    slab_bytes = max(SMALLEST_SLAB_BYTES, min(SLAB_BYTES, share_bytes)) // tensors
    unit_bytes = math.gcd(VEC16_BYTES, row_bytes)
    whole = VEC16_BYTES // unit_bytes
    rows = max(1, slab_bytes // (row_bytes * whole)) * whole
    units = row_bytes // unit_bytes
    lanes = math.gcd(units, BANKS_BYTES // unit_bytes, 32)
    while lanes < 32 and lanes < units and rows * lanes < THREADS:
        lanes *= 2
    return RowSlab(rows, lanes, unit_bytes, -(-rows * row_bytes // VEC16_BYTES) * VEC16_BYTES)


def starts_on_vectors(*tensors: Tensor) -> bool:
    """Whether all of them begin on 16 bytes."""
    return all(tensor.data_ptr() % VEC16_BYTES == 0 for tensor in tensors)
