"""Which chains of few elements take the kernel that loads the factors of all steps at once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from kernelviz.ops.kernels.vec16 import VEC16_BYTES

THREADS = 128
MOST_STEPS = 16
"""As many pairs of factors are in flight."""
MOST_FACTORS = 32
"""Factors of one kind of a thread: steps times elements. With 16 bytes of 16 steps, a thread had 128 registers of them."""
FEW_THREADS = 2**14
"""Up to about one block an SM of an H200, a thread gets fewer elements than it could, so that more SMs load. An estimate."""
MOST_THREADS = 2**17
"""About 1000 an SM of an H200, which are resident at once. With more, loads of other blocks hide the latency. An estimate. H200,
one number a step instead of a row, bf16, 8 steps: 451 elements take 1.25 us with all loads at once, 1.89 one after the other."""


@dataclass(frozen=True, slots=True)
class AtOnce:
    """Elements of a thread, and threads that have some."""

    unit: int
    threads: int


def at_once(m: int, n: int, steps: int, itemsize_bytes: int, *, packed: bool = False) -> AtOnce | None:
    """How threads share m rows of n elements; None for more elements or steps than the kernel is for, and, if they are `packed`,
    for rows that are not whole pairs.

    >>> at_once(631, 1, 3, 4), at_once(16, 4096, 4, 2), at_once(16, 4097, 4, 2), at_once(8192, 4096, 4, 2)
    (AtOnce(unit=1, threads=631), AtOnce(unit=4, threads=16384), AtOnce(unit=1, threads=65552), None)
    >>> at_once(64, 256, 4, 2, packed=True), at_once(1, 451, 4, 2, packed=True)
    (AtOnce(unit=2, threads=8192), None)
    """
    if steps > MOST_STEPS:
        return None
    widest = math.gcd(n, VEC16_BYTES // itemsize_bytes)
    while widest * steps > MOST_FACTORS:
        widest //= 2
    unit = 2 if packed else 1
    if unit > widest:
        return None
    while unit < widest and m * n // unit > FEW_THREADS:
        unit *= 2
    threads = m * n // unit
    return AtOnce(unit, threads) if threads <= MOST_THREADS else None
