"""Tokens of the CUDA C++ kernel of `rope` that rotates heads in shared memory."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from kernelviz.ops.kernels.vec16 import VEC16_BYTES

SOURCE = Path(__file__).parent / "staged.cu"
THREADS = 256
NARROW_BYTES = 4
"""The widest vector of which a half is a whole number, and a head, up to which heads are staged. H200, bytes moved in a second by
a vector of each half a thread: 2-byte vectors 2.1 TB (255,770 tokens of 28 heads of 11 fp16 309 us, 278 in Liger), 4-byte vectors
3.5 TB (55,557 of 68 of 14 bf16 125 us), 8-byte vectors 4.2 TB (219,309 of 10 of 12 fp16 52.8 us)."""
LEAST_BYTES = 2**21
"""Of all heads, from which this is done: an estimate. Fewer take the latency of their loads."""
CHUNK_BYTES, MOST_BYTES = 2**14, 44 * 1024
"""Of the heads of a block, as many as an SM has room for eight times, and the most, with the cosines and sines in fp32."""
MOST_ANGLES = 2048
"""Of a block: eight cosines and sines a thread."""
BLOCKS_A_MULTIPROCESSOR = 2
"""The fewest, if tokens are enough."""


@dataclass(frozen=True, slots=True)
class Staged:
    """Tokens of a block, and blocks."""

    tokens: int
    blocks: int


def staged(tokens: int, hq: int, hk: int, p: int, itemsize_bytes: int, count: int) -> Staged | None:
    """How blocks share so many tokens of hq and hk heads of p pairs on a GPU of `count` SMs; None where another kernel is better:
    for few heads, for halves of wide vectors, and for tokens of which a block has no room for a whole number of 16-byte vectors.

    >>> staged(255_770, 23, 5, 11, 2, 132), staged(16_305_089, 1, 1, 1, 2, 132)
    (Staged(tokens=12, blocks=21315), Staged(tokens=2048, blocks=7962))
    >>> staged(2303, 46, 2, 25, 2, 132), staged(30_952, 22, 1, 7, 4, 132), staged(31_510, 52, 2, 22, 2, 132)
    (Staged(tokens=2, blocks=1152), Staged(tokens=12, blocks=2580), Staged(tokens=3, blocks=10504))
    >>> staged(100, 23, 5, 11, 2, 132), staged(10**5, 23, 5, 12, 2, 132), staged(10**5, 71, 9, 99, 2, 132)
    (None, None, None)
    """
    half_bytes, of_token = p * itemsize_bytes, (hq + hk) * 2 * p * itemsize_bytes
    whole_head_bytes = 2 * half_bytes if half_bytes & (half_bytes - 1) == 0 else 0
    widest = max(math.gcd(half_bytes, VEC16_BYTES), min(whole_head_bytes, VEC16_BYTES))
    if widest > NARROW_BYTES or tokens * of_token < LEAST_BYTES:
        return None
    least = VEC16_BYTES // min(math.gcd(h * 2 * half_bytes, VEC16_BYTES) for h in (hq, hk))
    of_least = least * (of_token + 8 * p)
    if of_least > MOST_BYTES or least * p > MOST_ANGLES:
        return None
    at_once = min(
        CHUNK_BYTES // (least * of_token),
        MOST_BYTES // of_least,
        MOST_ANGLES // (least * p),
        tokens // (BLOCKS_A_MULTIPROCESSOR * count * least),
    )
    of_block = least * max(1, at_once)
    return Staged(of_block, -(-tokens // of_block))
