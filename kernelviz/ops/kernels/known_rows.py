"""Tiles of Triton kernels whose matrix has a size that is a constant: rows of a program, columns, warps.

The compiler folds the masks that such a size does not need, multiplies by constants, and loads as many elements at once as the
length of a row allows, of which a kernel with a length that it does not know only learns whether it is a multiple of 16.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd
from typing import TYPE_CHECKING

from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

WARP = 32
LONGEST_ROW = 8192
"""Elements of the longest row that a program has in registers."""
FEW_EACH, MOST_WARPS = 4, 16
"""Elements of a thread where each row has a program, and warps of a program: what Inductor chooses for few rows of up to 1024.
Of short rows, a warp has as many as this allows, because each program takes time to start and fetches its instructions. H200:
rmsnorm of 59 rows of 4 fp16 takes 1.05 us by a program a row and 0.88 by a lane each, quantize_int8 of 512 of one bf16 1.41 by
programs of one, and 1.03 by two of torch.compile. By a warp of several rows, an estimate."""
LONGEST_OF_FEW = 1024
"""Elements of such a row. H200: rmsnorm of 128 rows of 2048 fp32 takes 1.92 us by eight warps each, and 2.05 in torch.compile,
which has 16; Liger's kernel, which has eight, 1.82."""
LEAST_ROWS = 4
"""Of such a warp: two have more instructions than one, for few programs less."""
EACH, EACH_OF_LARGE, EACH_OF_TINY_ROWS = 8, 16, 32
"""Elements of a thread where a program has several rows, of a matrix of more than LARGE_BYTES, and if its rows have at most
TINY_ROW elements: a program then reads at least 2 KiB of each tensor in one piece, as Inductor's do."""
LARGE_BYTES = 2**24
TINY_ROW = 4
LONGEST_OF_WARP = 512
"""Elements of a row that a warp has alone, 16 a thread. H200: the backward pass of softmax takes 6.24 us for 3,303 rows of 897
fp16 by four warps each."""
WARPS = 4
MOST_ROWS = 1024
WARPS_A_MULTIPROCESSOR = 8
"""The fewest, if a program has several rows and more elements than a warp of few rows."""
WARPS_OF_VECTORS = 2
"""The same where rows of at most TINY_ROW elements are a power of two, so that a thread has whole rows: fewer programs of more
loads each. H200: rmsnorm of 39,237 rows of one fp16 takes 1.41 us so, 1.53 by programs of 256 elements and 1.49 in torch.compile;
the backward pass of softmax of 40,710 of two 1.46, 1.52 and 1.51."""
FEW_ROWS = 4
"""An SM, of those that have a warp or more each: an estimate."""
LARGEST_OFFSET = 2**31 - 1


@dataclass(frozen=True, slots=True)
class KnownRows:
    """Rows of a program, columns of the tile (a power of two), warps, programs; `wide`: offsets need 64 bits."""

    rows: int
    block: int
    warps: int
    programs: int
    wide: bool


def known_rows(m: int, n: int, itemsize_bytes: int, count: int) -> KnownRows | None:
    """The tile of m rows of n elements on a GPU of `count` SMs; None for rows that are too long.

    Few rows have a program each, with four elements a thread up to 1024, because they take latency alone; if vectors of at most
    four elements, one for each lane of a warp, are at least four rows, a program has these. Long rows have one, too, with eight.
    Of more short rows, a program has several; its warps share no row if a warp has enough vectors for one, so that no thread
    waits for another warp.

    >>> known_rows(6, 756, 2, 132)
    KnownRows(rows=1, block=1024, warps=8, programs=6, wide=False)
    >>> known_rows(128, 2048, 4, 132)
    KnownRows(rows=1, block=2048, warps=8, programs=128, wide=False)
    >>> known_rows(88, 1, 2, 132), known_rows(53, 4, 4, 132)
    (KnownRows(rows=32, block=1, warps=1, programs=3, wide=False), KnownRows(rows=32, block=4, warps=1, programs=2, wide=False))
    >>> known_rows(27, 20, 2, 132), known_rows(2, 31, 4, 132)
    (KnownRows(rows=4, block=32, warps=1, programs=7, wide=False), KnownRows(rows=1, block=32, warps=1, programs=2, wide=False))
    >>> known_rows(6027, 9, 4, 132)
    KnownRows(rows=16, block=16, warps=4, programs=377, wide=False)
    >>> known_rows(17_010, 1, 4, 132)
    KnownRows(rows=256, block=1, warps=4, programs=67, wide=False)
    >>> known_rows(262_776, 210, 4, 132)
    KnownRows(rows=4, block=256, warps=1, programs=65694, wide=False)
    >>> known_rows(11_829, 1183, 2, 132)
    KnownRows(rows=1, block=2048, warps=8, programs=11829, wide=False)
    >>> tile = known_rows(2**24, 4, 4, 132)
    >>> tile and (tile.rows, tile.warps), known_rows(1, 8193, 2, 132)
    ((1024, 4), None)
    """
    if n > LONGEST_ROW:
        return None
    block = 1 << (n - 1).bit_length()
    vector = gcd(VEC16_BYTES // itemsize_bytes, n)
    if m <= (count if block < WARP * FEW_EACH else FEW_ROWS * count) or block > LONGEST_OF_WARP:
        each = FEW_EACH if m <= FEW_ROWS * count and block <= LONGEST_OF_FEW else EACH
        of_warp = WARP * min(vector, FEW_EACH) // block
        rows = min(1 << (m - 1).bit_length(), of_warp) if of_warp >= LEAST_ROWS else 1
        warps = min(MOST_WARPS, max(1, block // (WARP * each)))
    else:
        is_large = m * n * itemsize_bytes > LARGE_BYTES
        each = (EACH_OF_TINY_ROWS if n <= TINY_ROW else EACH_OF_LARGE) if is_large else EACH
        warps = WARPS if block <= WARP * vector else 1
        # A warp that has a row has twice as many elements, because no other warp of its program hides its latency.
        rows = min(MOST_ROWS, max(1, WARP * warps * each * (2 if warps == 1 else 1) // block))
        fewest = max(1, WARP * FEW_EACH // block)
        least_warps = WARPS_OF_VECTORS if n == block <= TINY_ROW else WARPS_A_MULTIPROCESSOR
        while rows > fewest and -(-m // rows) * warps < least_warps * count:
            rows //= 2
        while warps > 1 and rows * block < WARP * warps * vector:
            warps //= 2
    return KnownRows(rows, block, warps, -(-m // rows), m * n > LARGEST_OFFSET)


def tile_of(x_MN: Tensor) -> KnownRows | None:
    """The tile of a matrix (M, N)."""
    m, n = x_MN.shape
    return known_rows(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
