"""Programs of the Triton kernels for a known number of elements, for flat tensors of more than 2^20 that are whole vectors."""

from __future__ import annotations

import math

import triton

from kernelviz.ops.kernels.triton_known_size import MOST, MOST_ELEMENTS, WARPS, WIDEST, Programs
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

MOST_VECTOR_ELEMENTS, MOST_HALF_VECTOR_ELEMENTS = 2**25, 2**21
"""Of tensors of whole 16-byte vectors, and of whole 8-byte ones. H200: quotients of 2,117,988 fp32 take 6.69 us so, 6.66 in
torch.compile, which knows the number, too, and 6.98 with a vector a thread, which are 1.9 waves; sigmoid of 1,810,140 bf16 3.00,
3.10 and 3.17; 24,921,736 fp32 to fp16 32.7, 32.8 and 33.5; but sums of 3,438,732 fp16 6.43 in torch.compile, 5.91 by vectors."""
DIVISOR = 16
"""Of numbers that Triton vectorises when it does not know them."""


def vector_programs(n: int, itemsize_bytes: int) -> Programs | None:
    """The launch for n elements of so many bytes, eight a thread; None up to 2^20, for numbers that Triton vectorises when it
    does not know them, and for those that are no whole vectors.

    >>> vector_programs(1_981_900, 4), vector_programs(1_140_088, 2)
    (Programs(count=1936, elements=1024, warps=4, width=4), Programs(count=1114, elements=1024, warps=4, width=8))
    >>> vector_programs(1_810_140, 2)
    Programs(count=1768, elements=1024, warps=4, width=4)
    >>> [vector_programs(n, 2) for n in (2**20 - 4, 2**24, 3_438_732, 2**22 + 2, 2**25 + 8)]
    [None, None, None, None, None]
    """
    whole = n * itemsize_bytes % VEC16_BYTES == 0
    halves = 2 * n * itemsize_bytes % VEC16_BYTES == 0
    most = MOST_VECTOR_ELEMENTS if whole else MOST_HALF_VECTOR_ELEMENTS if halves else 0
    if not MOST_ELEMENTS < n <= most or n % DIVISOR == 0:
        return None
    return Programs(triton.cdiv(n, MOST), MOST, WARPS, math.gcd(n, WIDEST))
