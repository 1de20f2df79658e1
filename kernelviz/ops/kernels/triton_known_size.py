"""Programs of Triton kernels that are compiled for the number of elements of flat tensors, and the elements of each."""

from __future__ import annotations

import math
from dataclasses import dataclass

import triton
import triton.language as tl

MOST_ELEMENTS = 2**20
"""Of a tensor. A longer one takes several times as long as what is saved: some instructions, and a path for the elements behind
the last vector."""
WARP, WARPS = 32, 4
PROGRAMS_AT_ONCE = 128
"""Up to so many, each has one of the 132 multiprocessors of an H200 for itself."""
FEWEST, MOST = 256, 1024
"""Elements of each of several programs."""
NARROW_ELEMENTS, NARROW_WARPS = 512, 8
"""Of a program that has two elements a thread in place of eight."""
WIDEST = 8
"""16-bit elements of 16 bytes, the widest load."""
WIDE_ELEMENTS = 2**13
"""From which light kernels have eight elements a thread, if their number allows loads of 16 bytes. H200: `scale` of 32,768 fp16
takes 1.27 to 1.31 us with 8 or 16 elements a thread and one or two warps, and 1.36 with two elements and four warps."""


@dataclass(frozen=True, slots=True)
class Programs:
    """A launch: programs, elements of each, its warps, and neighbouring elements that a thread loads at once."""

    count: int
    elements: int
    warps: int
    width: int


def programs(n: int, *, narrow: bool = False, light: bool = False) -> Programs | None:
    """The launch for n elements; None for more than 2^20. `narrow`: two elements a thread in place of eight, for kernels of many
    registers an element. `light`: the kernel computes little, so that a thread has eight of fewer elements, too.

    A program has several elements a thread if that leaves one program for each multiprocessor: the fewer programs and warps, the
    fewer wait for their instructions, and the wider the loads. Loads of an odd number of elements cannot be wide.

    >>> programs(3), programs(4096)
    (Programs(count=1, elements=32, warps=1, width=1), Programs(count=16, elements=256, warps=4, width=2))
    >>> programs(2**15), programs(2**15, light=True)
    (Programs(count=128, elements=256, warps=4, width=2), Programs(count=128, elements=256, warps=1, width=8))
    >>> programs(65540), programs(80648)
    (Programs(count=65, elements=1024, warps=4, width=4), Programs(count=79, elements=1024, warps=4, width=8))
    >>> programs(148549), programs(2**20 + 1)
    (Programs(count=291, elements=512, warps=8, width=1), None)
    """
    if n > MOST_ELEMENTS:
        return None
    if n <= WARP * WARPS:
        elements = max(WARP, triton.next_power_of_2(n))
        return Programs(1, elements, elements // WARP, 1)
    elements, warps = min(MOST, max(FEWEST, triton.next_power_of_2(n) // PROGRAMS_AT_ONCE)), WARPS
    if elements == MOST and (narrow or n % 2):
        elements, warps = NARROW_ELEMENTS, NARROW_WARPS
    elif light and n > WIDE_ELEMENTS and n % WIDEST == 0:
        warps = elements // (WARP * WIDEST)
    return Programs(triton.cdiv(n, elements), elements, warps, math.gcd(n, WIDEST, elements // (WARP * warps)))


@triton.jit
def indexes(N: tl.constexpr, BLOCK: tl.constexpr, WIDTH: tl.constexpr):
    # Of a program's elements, in 32 bits. Threads behind the last WIDTH elements repeat these and store the same again, so that
    # no mask is needed, which would be a branch around the loads. WIDTH divides N, so vectors stay whole and aligned.
    lanes = tl.arange(0, BLOCK)
    first = tl.program_id(0) * BLOCK
    if N % BLOCK == 0:
        return first + lanes
    elif WIDTH == 1:
        return tl.minimum(first + lanes, N - 1)
    else:
        return tl.minimum(first + lanes // WIDTH * WIDTH, N - WIDTH) + lanes % WIDTH
