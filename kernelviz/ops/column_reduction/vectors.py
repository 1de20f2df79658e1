"""CUDA C++ kernels of `column_sum` for few rows, few columns, and rows that start within a 16-byte vector, bound to matrices."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.column_reduction.periodic_cluster import bind_periodic_cluster, periodic_cluster
from kernelviz.ops.column_reduction.strips import LEAST_MULTIPROCESSORS, bind_column_strips, column_strips
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.vec16 import VEC16_BYTES

if TYPE_CHECKING:
    from torch import Tensor

FOLDER = Path(__file__).parent
FEW_ROWS, FEW_ODD_ROWS = FOLDER / "few_rows.cu", FOLDER / "few_odd_rows.cu"
SHIFTED, PERIODIC, KNOWN_SIZE = FOLDER / "shifted.cu", FOLDER / "periodic.cu", FOLDER / "known_size.cu"
WARP = 32
THREADS = 256
LONG_COPY_BYTES = 2**26
"""Of a matrix of one row, which is copied, from which a thread has one vector: an estimate. H200, 158 MB: 74.9 us with four a
thread and 72.5 in torch.compile, which has one; a copy of 34 MB takes 15.4 us with four and 15.7 with one."""
MOST_COLUMNS = 2**31 - 1 - 8 * THREADS
"""Columns are counted in 32 bits, also those after the last one that a thread tests."""
ODD_ROWS_IN_FLIGHT = 8
"""Of a thread, one vector each. Where rows begin within vectors repeats every 8 rows, for elements of 16 bits."""
MOST_ODD_GROUPS = 4
"""Of warps of a block that share the rows: an estimate."""
ODD_VECTORS = WARP - 1
"""Of a warp and row: the last lane adds up elements for its neighbour only."""
ODD_ITEMSIZE = 2
"""Bytes of the widest elements of which odd rows are read by vectors. Wider ones are read one by one, as fast as memory: H200,
fp32 7 x 2,598,897, 19.9 us; by vectors, two of the input for one of the output, it took 21.7."""
KNOWN_SIZE_ROWS, KNOWN_SIZE_THREADS = 32, 128
"""Most rows of a matrix for whose size a kernel is compiled, all of which a thread has in flight, and most threads of its
blocks."""
KNOWN_SIZE_ELEMENTS, KNOWN_SIZE_COLUMNS, KNOWN_SIZE_VECTOR_BYTES = 2**14, 2**16, 8
"""Most elements of such a matrix, or most columns of rows without vectors of so many bytes: estimates. H200: 29 rows of 314 bf16
took 2.3 us by parts of the rows and 1.36 by inductor's kernel for the size, 10 of 41,643 fp32 2.09 by 8 rows at once and
1.86."""
BATCH = 8
"""16-byte loads that a thread of the kernels for many rows has in flight."""
FEWEST_LANES = 8
"""Threads side by side of strips that are narrower for few rows."""
PERIODIC_THREADS = 512


@dataclass(frozen=True, slots=True)
class FewRows:
    """Columns of a vector, vectors of a thread, rows of them that it has in flight, and whether these are all."""

    each: int
    sets: int
    rows: int
    one_pass: bool

    def blocks(self, n: int) -> int:
        """Blocks for n columns."""
        return -(-n // (self.each * self.sets * THREADS))

    def threads(self, n: int) -> int:
        """Threads of a block: as many as the only one needs, or all."""
        return min(THREADS, -(-n // (self.each * WARP)) * WARP)

    @property
    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with."""
        shape = {"EACH": self.each, "SETS": self.sets, "ROWS": self.rows, "ONE_PASS": int(self.one_pass)}
        return {name: str(value) for name, value in shape.items()}


def few_rows_tile(m: int, n: int, itemsize_bytes: int, shift: int, count: int) -> FewRows:
    """The widest vectors that each row consists of; a thread has about 64 bytes in flight, in at most 16 loads.

    `shift`: elements by which the matrix starts behind a multiple of 16 bytes. Where that is fewer than two blocks for each of
    `count` SMs, a thread has fewer vectors.

    >>> few_rows_tile(2, 1555024, 2, 0, 132), few_rows_tile(7, 2598897, 4, 0, 132)
    (FewRows(each=8, sets=2, rows=2, one_pass=True), FewRows(each=1, sets=2, rows=8, one_pass=True))
    >>> few_rows_tile(1, 1, 2, 0, 132), few_rows_tile(1000, 2**20, 2, 4, 132)
    (FewRows(each=1, sets=1, rows=1, one_pass=True), FewRows(each=4, sets=1, rows=8, one_pass=False))
    >>> few_rows_tile(1, 79143240, 2, 0, 132)
    FewRows(each=8, sets=1, rows=1, one_pass=True)
    """
    each = math.gcd(VEC16_BYTES // itemsize_bytes, n, shift)
    rows = min(8, 1 << (m - 1).bit_length())
    sets = max(1, min(16, 64 // (each * itemsize_bytes)) // rows)
    if m == 1 and n * itemsize_bytes >= LONG_COPY_BYTES:
        sets = 1
    while sets > 1 and FewRows(each, sets, rows, m <= rows).blocks(n) < 2 * count:
        sets //= 2
    return FewRows(each, sets, rows, m <= rows)


@dataclass(frozen=True, slots=True)
class FewOddRows:
    """Blocks of THREADS; groups of their warps that share the rows; rows of a thread in flight, and whether there are more;
    elements by which the matrix starts behind a multiple of 16 bytes; elements of a row behind its last whole vector; the number
    of the last row, modulo 8."""

    blocks: int
    groups: int
    rows: int
    many: bool
    shift: int
    odd: int
    last: int

    @property
    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with."""
        rows = {"ROWS": self.rows, "MANY": int(self.many), "LAST": self.last, "GROUPS": self.groups}
        return {name: str(value) for name, value in (rows | {"SHIFT": self.shift, "ODD": self.odd}).items()}


def few_odd_rows(m: int, n: int, itemsize_bytes: int, shift: int, count: int) -> FewOddRows | None:
    """Blocks for m rows that begin anywhere in a vector; None where all begin with one, and for short rows.

    Short rows give `count` SMs less than half a block each: there a thread for each column has as many loads in flight. Up to
    four groups of warps share more than 8 rows where there are fewer than two blocks an SM. H200: 28 rows of 240,193 fp16 take
    6.5 us by 122 blocks of one group, 5.0 by four groups and 5.5 in torch.compile.

    >>> few_odd_rows(7, 1000001, 2, 0, 132)
    FewOddRows(blocks=505, groups=1, rows=7, many=False, shift=0, odd=1, last=6)
    >>> few_odd_rows(28, 240193, 2, 0, 132)
    FewOddRows(blocks=485, groups=4, rows=8, many=True, shift=0, odd=1, last=3)
    >>> few_odd_rows(2, 1555024, 2, 0, 132), few_odd_rows(7, 30001, 2, 0, 132)
    (None, None)
    """
    width = VEC16_BYTES // itemsize_bytes
    if math.gcd(width, n, shift) == width or n < max(2 * width, THREADS * count // 2 * width):
        return None
    warps = -(-n // (width * ODD_VECTORS))
    rows, many, groups = min(m, ODD_ROWS_IN_FLIGHT), m > ODD_ROWS_IN_FLIGHT, 1
    while (
        groups < MOST_ODD_GROUPS
        and groups * ODD_ROWS_IN_FLIGHT < m
        and -(-warps * groups * WARP // THREADS) < 2 * count
    ):
        groups *= 2
    blocks = -(-warps * groups * WARP // THREADS)
    return FewOddRows(blocks, groups, rows, many, shift, n % width, (m - 1) % ODD_ROWS_IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class ShiftedStrips:
    """How blocks of 256 threads share a matrix: whether rows may start within a vector, threads side by side, strips of columns,
    parts of the rows."""

    shifted: bool
    lanes: int
    strips: int
    parts: int
    part_rows: int

    def columns(self, width: int) -> int:
        """Columns of a strip, for vectors of `width` columns."""
        return (self.lanes - self.shifted) * width

    @property
    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with."""
        return {"LANES": str(self.lanes), "SHIFTED": str(int(self.shifted))}


def shifted_strips(m: int, n: int, width: int, shift: int, count: int) -> ShiftedStrips:
    """Strips for m rows of n columns, `width` columns a vector, on a GPU of `count` SMs.

    In all at most three blocks an SM, because they are resident at once; two where strips are few, because then the last block
    of a strip adds up many sums. A part has at least 8 rows for each thread. Up to 24 rows of a thread make one part, because
    three times 8 loads take about as long as adding up the sums of parts; for up to 8, strips are narrower where otherwise there
    were fewer of them than SMs.

    >>> shifted_strips(1765, 9361, 8, 0, 132)
    ShiftedStrips(shifted=True, lanes=32, strips=38, parts=10, part_rows=177)
    >>> shifted_strips(4096, 1024, 8, 0, 132)
    ShiftedStrips(shifted=False, lanes=32, strips=4, parts=64, part_rows=64)
    >>> shifted_strips(100, 40, 4, 1, 132)
    ShiftedStrips(shifted=True, lanes=8, strips=2, parts=1, part_rows=100)
    >>> shifted_strips(92, 10485, 4, 0, 132)
    ShiftedStrips(shifted=True, lanes=16, strips=175, parts=1, part_rows=92)
    """
    shifted = n % width != 0 or shift != 0
    vectors = -(-n // width)
    lanes = min(WARP, 1 << (vectors + shifted - 1).bit_length())
    # Down to rows of 128 bytes, where a thread has all of its rows in flight at once.
    while lanes > FEWEST_LANES and m <= BATCH * THREADS * 2 // lanes and -(-vectors // (lanes - shifted)) < count:
        lanes //= 2
    strips = -(-vectors // (lanes - shifted))
    shortest_rows = BATCH * (THREADS // lanes)
    slots = (2 if strips <= 4 else 3) * count
    parts = max(1, min(slots // strips, m // shortest_rows)) if m > 3 * shortest_rows else 1
    part_rows = -(-m // parts)
    return ShiftedStrips(shifted, lanes, strips, -(-m // part_rows), part_rows)


@dataclass(frozen=True, slots=True)
class Period:
    """Threads of a block, those of them that load, and blocks."""

    threads: int
    active: int
    blocks: int


def period_of(m: int, n: int, itemsize_bytes: int, count: int) -> Period:
    """Blocks for m rows of n columns on a GPU of `count` SMs: the vectors of a block's threads are whole rows together.

    One block an SM, two for up to 64 columns, whose sums of blocks are soon added up; but each thread gets at least four vectors.
    Errors: BadField where a block has too few threads for that.

    >>> period_of(432734152, 1, 2, 132)
    Period(threads=512, active=512, blocks=264)
    >>> period_of(9001, 131, 4, 132)
    Period(threads=416, active=393, blocks=132)
    >>> period_of(100, 3, 4, 132)
    Period(threads=96, active=75, blocks=1)
    """
    width = VEC16_BYTES // itemsize_bytes
    vectors_of_period = n // math.gcd(n, width)
    if vectors_of_period > PERIODIC_THREADS:
        raise BadField(
            "size n", n, f"this kernel takes up to {PERIODIC_THREADS} columns, or as many vectors; choose cuda_shifted"
        )
    vectors = -(-m * n // width)
    periods = min(PERIODIC_THREADS // vectors_of_period, -(-vectors // vectors_of_period))
    active = periods * vectors_of_period
    threads = -(-active // WARP) * WARP
    blocks = min((2 if n <= 64 else 1) * count, -(-vectors // (4 * active)))
    return Period(threads, active, blocks)


def bind_few_rows(x_MN: Tensor) -> Launch:
    """A thread has all rows of its columns: of 16 bytes of them, also where rows of 16-bit elements begin within a vector. Up to
    32 rows of few elements or unaligned ones have a kernel compiled for their size.

    All binds raise BadField for a matrix that is not contiguous or too wide.
    """
    m, n, shift = _shape(x_MN)
    size, count = x_MN.element_size(), multiprocessors(x_MN.device)
    out_N = _sums(x_MN)
    odd = few_odd_rows(m, n, size, shift, count) if size <= ODD_ITEMSIZE else None
    if has_known_size(m, n, size, shift):
        return _bind_known_size(x_MN, out_N)
    if odd is not None:
        return _bind_few_odd_rows(x_MN, out_N, odd)
    tile = few_rows_tile(m, n, size, shift, count)
    kernel = nvrtc.kernel(FEW_ROWS, "column_few_rows", {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines})
    blocks, threads, sizes = tile.blocks(n), tile.threads(n), (ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, x_MN.data_ptr(), out_N.data_ptr(), *sizes)
        return out_N

    return launch


def has_known_size(m: int, n: int, itemsize_bytes: int, shift: int) -> bool:
    """Whether a kernel is compiled for m rows of n columns of a matrix that starts `shift` elements behind a multiple of 16
    bytes.

    >>> sizes = (29, 314), (10, 41643), (32, 2048), (33, 2), (2, 16777259)
    >>> [has_known_size(m, n, 2, 0) for m, n in sizes]
    [True, True, False, False, False]
    """
    vector_bytes = math.gcd(VEC16_BYTES // itemsize_bytes, n, shift) * itemsize_bytes
    narrow = vector_bytes < KNOWN_SIZE_VECTOR_BYTES and n <= KNOWN_SIZE_COLUMNS
    return m <= KNOWN_SIZE_ROWS and (m * n <= KNOWN_SIZE_ELEMENTS or narrow)


def known_size_grid(n: int) -> tuple[int, int]:
    """Blocks and their threads, one a column.

    >>> known_size_grid(1), known_size_grid(128), known_size_grid(1000)
    ((1, 32), (1, 128), (8, 128))
    """
    threads = min(KNOWN_SIZE_THREADS, -(-n // WARP) * WARP)
    return -(-n // threads), threads


def _bind_known_size(x_MN: Tensor, out_N: Tensor) -> Launch:
    m, n = x_MN.shape
    blocks, threads = known_size_grid(n)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "KNOWN_M": str(m), "KNOWN_N": str(n)}
    defines |= {"INDEX": "unsigned", "BLOCK_THREADS": str(threads)}
    kernel = nvrtc.kernel(KNOWN_SIZE, "column_known_size", defines)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, x_MN.data_ptr(), out_N.data_ptr())
        return out_N

    return launch


def _bind_few_odd_rows(x_MN: Tensor, out_N: Tensor, tile: FewOddRows) -> Launch:
    m, n = x_MN.shape
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines}
    kernel = nvrtc.kernel(FEW_ODD_ROWS, "column_few_odd_rows", defines)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, tile.blocks, THREADS, x_MN.data_ptr(), out_N.data_ptr(), *sizes)
        return out_N

    return launch


def bind_shifted(x_MN: Tensor) -> Launch:
    """Several blocks a strip of columns, of which the last adds up their sums; 16-byte loads wherever rows start."""
    import torch

    m, n, shift = _shape(x_MN)
    width = VEC16_BYTES // x_MN.element_size()
    tile = shifted_strips(m, n, width, shift, multiprocessors(x_MN.device))
    out_N = _sums(x_MN)
    numbers = tile.strips * tile.parts * tile.columns(width) if tile.parts > 1 else 1
    partials = torch.empty(numbers, dtype=torch.float32, device=x_MN.device)
    arrived = torch.zeros(tile.strips, dtype=torch.int32, device=x_MN.device)
    kernel = nvrtc.kernel(SHIFTED, "column_shifted", {"ELEMENT": nvrtc.element_type(x_MN.dtype), **tile.defines})
    sizes = (
        ctypes.c_longlong(m),
        ctypes.c_int(n),
        ctypes.c_int(tile.strips),
        ctypes.c_int(tile.parts),
        ctypes.c_longlong(tile.part_rows),
        ctypes.c_int(shift),
    )

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, partials, arrived, out_N))
        nvrtc.launch(kernel, tile.strips * tile.parts, THREADS, *pointers, *sizes)
        return out_N

    return launch


def bind_periodic(x_MN: Tensor) -> Launch:
    """The matrix as one vector: a thread's loads are so far apart that each element of them is always of the same column.

    The last block waits for the sums of the others, so two calls must not run at the same time.
    """
    import torch

    m, n, _ = _shape(x_MN)
    period = period_of(m, n, x_MN.element_size(), multiprocessors(x_MN.device))
    out_N = _sums(x_MN)
    slots = torch.zeros(period.blocks * n, dtype=torch.int64, device=x_MN.device)
    kernel = nvrtc.kernel(PERIODIC, "column_periodic", {"ELEMENT": nvrtc.element_type(x_MN.dtype)})
    sizes = (ctypes.c_longlong(m * n), ctypes.c_int(n), ctypes.c_int(period.active))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, slots, out_N))
        nvrtc.launch(kernel, period.blocks, period.threads, *pointers, *sizes)
        return out_N

    return launch


def bind_strips(x_MN: Tensor) -> Launch:
    """All rows of a strip of columns by a block or cluster; many rows of narrower vectors than 8 bytes, and long matrices of few
    columns, as `bind_shifted`."""
    m, n, shift = _shape(x_MN)
    count = max(LEAST_MULTIPROCESSORS, multiprocessors(x_MN.device))
    tile = column_strips(m, n, x_MN.element_size(), shift, count)
    return bind_shifted(x_MN) if tile is None else bind_column_strips(x_MN, tile)


def bind_cluster(x_MN: Tensor) -> Launch:
    """The matrix as one vector, up to 512 KiB of at most 256 columns by one cluster; larger ones as `bind_periodic`."""
    m, n, shift = _shape(x_MN)
    cluster = periodic_cluster(m, n, x_MN.element_size(), shift)
    return bind_periodic(x_MN) if cluster is None else bind_periodic_cluster(x_MN, cluster, shift)


def _shape(x_MN: Tensor) -> tuple[int, int, int]:
    """Rows, columns, and the elements by which the matrix starts behind a multiple of 16 bytes."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if n > MOST_COLUMNS:
        raise BadField("size n", n, f"this kernel counts columns in 32 bits; it takes at most {MOST_COLUMNS}")
    return m, n, x_MN.data_ptr() % VEC16_BYTES // x_MN.element_size()


def _sums(x_MN: Tensor) -> Tensor:
    import torch

    return torch.empty(x_MN.shape[1], dtype=x_MN.dtype, device=x_MN.device)
