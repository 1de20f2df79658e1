"""CUDA C++ kernels that transpose a matrix of few rows or few columns, bound to tensors."""

from __future__ import annotations

import ctypes
import functools
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "interleave.cu"
REGISTERS_SOURCE = Path(__file__).parent / "interleave_registers.cu"
MOST_STREAMS = 64
"""Rows or columns that a block interleaves. Beyond, a tile's part of a row is short, and square tiles are faster."""
SHAPES = ((256, 4), (256, 2), (256, 1), (128, 1), (64, 1))
"""Threads of a block and 16-byte vectors of a thread, which it loads before it uses the first. The first shape that gives two
blocks an SM is taken."""
ROWS_IN_REGISTERS_BYTES, COLUMNS_IN_REGISTERS_BYTES = 2**19, 2**22
"""Of a matrix of few rows, and of few columns, whose threads transpose in registers: it takes about the latency of memory. H200:
200,000 rows of 4 fp32 take 2.57 us so and 2.72 through shared memory; 3 rows of 100,001 bf16 1.92 and 1.88."""
PAIR, MOST_PAIR_ELEMENTS = 2, 2**31 - 2**16
"""Columns of a matrix of any size, up to MOST_PAIR_ELEMENTS (elements are counted in 32 bits), whose threads transpose in
registers, if a thread has a 16-byte vector of each column: it then loads 32 adjacent bytes. The time was not measured; H200: 2^25
rows of 2 fp16 take 66 us through shared memory, and 61 in torch.compile."""
REGISTER_BYTES, REGISTER_STREAMS = 64, 24
"""Of a thread there, and rows or columns that it has."""
REGISTER_THREADS, BLOCKS_PER_MULTIPROCESSOR = (64, 128, 256), 4
"""Of a block there: the fewest that give an SM no more blocks than that, because an H200 starts a block each 0.6 ns."""
FEWEST_THREADS = 8192
"""Of all blocks, before a thread has more than one element of a stream."""


@dataclass(frozen=True, slots=True)
class Tile:
    """`count` streams (rows or columns) of `length` elements of 4 or 2 bytes, and how a block moves them."""

    few_rows: bool
    count: int
    length: int
    width: int
    threads: int
    vectors: int

    @property
    def rest(self) -> int:
        return self.length % self.width

    @property
    def span(self) -> int:
        """Elements of each stream that a block moves."""
        return self.vectors * self.threads // self.count * self.width

    @property
    def blocks(self) -> int:
        """The vectors of a tile of `deinterleave` begin up to `width` - 1 rows early, so the last rows may need one more tile."""
        early = 0 if self.few_rows or not self.rest else self.width - 1
        return -(-(self.length + early) // self.span)

    def defines(self, element: str, relu: bool) -> dict[str, str]:
        """What the kernel is compiled with."""
        values = {"RELU": relu, "FEW_ROWS": self.few_rows, "STREAMS": self.count, "REST": self.rest}
        pitch, shift = self.pitch
        sizes = {"THREADS": self.threads, "VECTORS": self.vectors, "PITCH": pitch, "SHIFT": shift}
        return {"ELEMENT": element, **{name: str(int(value)) for name, value in (values | sizes).items()}}

    @property
    def pitch(self) -> tuple[int, int]:
        """16-byte vectors from one stream to the next in shared memory, and how many more after every `width` streams."""
        more = (1 if self.few_rows else 2) if self.rest else 0
        return pitch_of(self.span // self.width + more, self.count, self.rest, self.width)


def threads_of(count: int, most: int) -> int:
    """Threads of a block: a multiple of `count`, so that a thread's elements are of the same streams in each of its vectors.

    >>> [threads_of(count, 256) for count in (1, 2, 3, 10, 15, 37, 64)], threads_of(37, 64)
    ([256, 256, 192, 160, 255, 222, 256], 37)
    """
    whole_warps = math.lcm(32, count)
    unit = whole_warps if whole_warps <= most else count
    return most // unit * unit


@functools.cache
def pitch_of(least: int, count: int, rest: int, width: int) -> tuple[int, int]:
    """The pitch, of eight from `least` on, at which a warp's accesses of single elements have the fewest bank conflicts, and
    whether one more vector after every `width` streams avoids some.

    >>> pitch_of(128, 2, 0, 8), pitch_of(64, 16, 0, 8), pitch_of(32, 32, 0, 8)
    ((128, 0), (64, 0), (32, 1))
    """
    layouts = ((pitch, shift) for pitch in range(least, least + 8) for shift in (0, 1))
    return min(layouts, key=lambda layout: (cycles(layout[0], layout[1], count, rest, width), layout))


def cycles(pitch: int, shift: int, count: int, rest: int, width: int) -> int:
    """Cycles of shared memory of a warp that accesses 16 bytes a thread, one element at a time; `width` without a conflict.

    Threads that access the same 4 bytes do not conflict. At the pitches of `pitch_of` it is 1 or 2 an access for most counts of
    streams, and at most 5.

    >>> cycles(128, 0, 2, 0, 8), cycles(32, 0, 32, 0, 8), cycles(32, 1, 32, 0, 8)
    (16, 32, 8)
    """
    total = 0
    for i in range(width):
        of_banks: list[set[int]] = [set() for _ in range(32)]
        for lane in range(32):
            column, stream = divmod(lane * width + i, count)
            vector = stream * pitch + stream // width * shift
            four_bytes = (vector * width + stream * rest % width + column) * 4 // width
            of_banks[four_bytes % 32].add(four_bytes)
        total += max(map(len, of_banks))
    return total


def tile_of(m: int, n: int, itemsize_bytes: int, processors: int) -> Tile | None:
    """The tile of a matrix with few rows, or with few columns; None for other matrices.

    >>> tile = tile_of(2, 28290330, 2, 132)
    >>> (tile.few_rows, tile.threads, tile.vectors, tile.span, tile.blocks)
    (True, 256, 4, 4096, 6907)
    >>> tile = tile_of(22330, 10, 2, 132)
    >>> (tile.threads, tile.vectors, tile.blocks), tile_of(4096, 4096, 2, 132)
    ((60, 1, 466), None)
    """
    width = 16 // itemsize_bytes
    count, length = min(m, n), max(m, n)
    if count > MOST_STREAMS or length < width:
        return None
    shapes = [(threads_of(count, most), vectors) for most, vectors in SHAPES]
    enough = (shape for shape in shapes if m * n >= 2 * processors * shape[0] * shape[1] * width)
    threads, vectors = next(enough, shapes[-1])
    # One column is one row: a copy.
    return Tile(m <= n or n == 1, count, length, width, threads, vectors)


@dataclass(frozen=True, slots=True)
class InRegisters:
    """`count` streams of `length` elements, of which a thread has `each` of every stream; threads of a block."""

    few_rows: bool
    count: int
    length: int
    each: int
    threads: int

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        return -(-self.length // (self.each * self.threads))

    def defines(self, element: str, relu: bool) -> dict[str, str]:
        """What the kernel is compiled with."""
        shape = {"STREAMS": self.count, "EACH": self.each, "FEW_ROWS": int(self.few_rows), "THREADS": self.threads}
        return {"ELEMENT": element, "RELU": str(int(relu))} | {name: str(value) for name, value in shape.items()}


def in_registers(m: int, n: int, itemsize_bytes: int, processors: int) -> InRegisters | None:
    """How threads transpose a small matrix of few rows or columns in registers, or one of two columns; None for others.

    A thread has as many elements of a stream as divide its length, in one access, while threads are enough.

    >>> in_registers(22330, 10, 2, 132), in_registers(2**20, 10, 2, 132)
    (InRegisters(few_rows=False, count=10, length=22330, each=2, threads=64), None)
    >>> in_registers(2, 3, 2, 132)
    InRegisters(few_rows=True, count=2, length=3, each=1, threads=64)
    >>> in_registers(2**25, 2, 2, 132)
    InRegisters(few_rows=False, count=2, length=33554432, each=8, threads=256)
    """
    count, length = min(m, n), max(m, n)
    each = math.gcd(VEC16_BYTES // itemsize_bytes, length)
    is_pair = n == PAIR < m and each * itemsize_bytes == VEC16_BYTES and m * n <= MOST_PAIR_ELEMENTS
    most_bytes = ROWS_IN_REGISTERS_BYTES if m <= n else COLUMNS_IN_REGISTERS_BYTES
    is_small = m * n * itemsize_bytes <= most_bytes and count * itemsize_bytes <= REGISTER_BYTES
    if not is_pair and (not is_small or count > REGISTER_STREAMS):
        return None
    while each > 1 and (each * count * itemsize_bytes > REGISTER_BYTES or length // each < FEWEST_THREADS):
        each //= 2
    most_blocks = BLOCKS_PER_MULTIPROCESSOR * processors
    enough = (threads for threads in REGISTER_THREADS if length <= each * threads * most_blocks)
    return InRegisters(m <= n, count, length, each, next(enough, REGISTER_THREADS[-1]))


def bind_interleave(x_MN: Tensor, *, relu: bool = False) -> Launch | None:
    """Few rows or few columns; None for a matrix with more of both, or that starts inside a vector.

    `relu`: the result is max(xᵀ, 0). Raises BadField for a matrix that is not contiguous.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    processors = multiprocessors(x_MN.device)
    tile = tile_of(m, n, x_MN.element_size(), processors)
    small = in_registers(m, n, x_MN.element_size(), processors)
    if x_MN.data_ptr() % 16:
        return None
    out_NM = torch.empty((n, m), dtype=x_MN.dtype, device=x_MN.device)
    if small is not None:
        return _bind_in_registers(x_MN, out_NM, small, relu)
    if tile is None:
        return None
    name = "interleave" if tile.few_rows else "deinterleave"
    kernel = nvrtc.kernel(SOURCE, name, tile.defines(nvrtc.element_type(x_MN.dtype), relu))
    blocks, threads = tile.blocks, tile.threads
    arguments = (x_MN.data_ptr(), out_NM.data_ptr(), ctypes.c_longlong(tile.length))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return out_NM

    return launch


def _bind_in_registers(x_MN: Tensor, out_NM: Tensor, shape: InRegisters, relu: bool) -> Launch:
    defines = shape.defines(nvrtc.element_type(x_MN.dtype), relu)
    kernel = nvrtc.kernel(REGISTERS_SOURCE, "interleave_registers", defines)
    length = ctypes.c_int(shape.length)

    def launch() -> Tensor:
        nvrtc.launch(kernel, shape.blocks, shape.threads, x_MN.data_ptr(), out_NM.data_ptr(), length)
        return out_NM

    return launch
