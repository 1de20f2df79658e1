"""CUDA C++ kernels of `row_sum` and `argmax`, bound to tensors.

The kernels of `cuda.cu` serve both ops. `row_sum_streamed` and `argmax_vec16` have files of their own, include
`headers/streamed_rows.cuh` and lay threads over rows as a `StreamTile` says.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
ARGMAX_VEC16_SOURCE = Path(__file__).parent / "cuda_argmax_vec16.cu"
STREAMED_SOURCE = Path(__file__).parent / "cuda_streamed.cu"
VEC16_BYTES = 16
LONGEST_ROW_OF_A_WARP_BYTES = 4 * 1024
"""For sums; rows of 16 KiB: 4510 GB/s by blocks of 128 threads against 4356 by warps."""
LONGEST_ROW_OF_A_WARP_ARGMAX_BYTES = 16 * 1024
"""For argmax; rows of 16 KiB: 4272 GB/s by warps against 3934 by blocks of 128 threads."""
FEW_PARTS = 8
"""Of a row, below which their number is rounded up, because one less would leave more of the GPU idle."""
SHORTEST_PART_BYTES = 8 * 1024
"""Of a row that several blocks share: four 16-byte vectors for each of 128 threads."""
LONGEST_ROW_OF_A_WARP_VECTORS = 256
"""4 KiB, eight vectors a thread. Blocks read longer rows faster (row_sum: 4510 against 4356 GB/s at 16 KiB)."""
SHORTEST_SPLIT_BYTES = 64 * 1024
"""1024 threads have this much of a row in flight at once, so a second block would save less than the merge costs."""
FLAGGED_THREADS, FLAGGED_BLOCKS = 512, 3
"""Of the kernel in which one block of a row waits: threads of a block, and blocks an SM. An estimate. H200: one row of 1,870,376
bf16 takes row_sum 5.4 us if the last block to finish adds up the sums, and 1,870,041 fp16 take sum 3.60 by a block that waits."""
FEW_ROWS_THREADS = 512
LONGEST_ROW_ARGMAX_VEC16 = 2**31 - 1 - 16 * 1024
LONGEST_ROW_STREAMED = 2**31 - 1 - 64 * 1024
"""Indices are counted in 32 bits, also those after the row's end that a thread tests."""


def bind_row_per_thread(x_MN: Tensor, argmax: bool) -> Launch:
    """A thread a row of a contiguous matrix (M, N). All binds raise BadField for a matrix that is not contiguous."""
    m = x_MN.shape[0]
    return _bind("row_per_thread", x_MN, argmax, blocks=-(-m // 128), threads=128)


def bind_row_per_warp(x_MN: Tensor, argmax: bool) -> Launch:
    """A warp a row, eight rows a block."""
    return _bind("row_per_warp", x_MN, argmax, blocks=-(-x_MN.shape[0] // 8), threads=256)


def bind_row_per_block(x_MN: Tensor, argmax: bool, *, threads: int = 0) -> Launch:
    """A block a row; by default 128 to 512 threads, each with eight 16-byte vectors of the row."""
    threads = threads or threads_for(x_MN.shape[1] * x_MN.element_size())
    return _bind("row_per_block", x_MN, argmax, blocks=x_MN.shape[0], threads=threads)


def bind_split_row(x_MN: Tensor, argmax: bool, *, parts: int = 0, threads: int = 0) -> Launch:
    """Several blocks a row; by default as many as keep every SM busy."""
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    itemsize = x_MN.element_size()
    parts = parts or parts_for(m, n * itemsize, multiprocessors(x_MN.device))
    threads = threads or threads_for(-(-n * itemsize // parts))
    kernel, out_M = _kernel("row_split", x_MN, argmax, threads)
    values = torch.empty(m * parts, dtype=torch.float32, device=x_MN.device)
    indices = torch.empty(m * parts, dtype=torch.int32, device=x_MN.device)
    tickets = torch.zeros(m, dtype=torch.int32, device=x_MN.device)
    sizes = (ctypes.c_int(n), ctypes.c_int(parts))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, values, indices, tickets, out_M))
        nvrtc.launch(kernel, m * parts, threads, *pointers, *sizes)
        return out_M

    return launch


def flagged_parts(m: int, vectors: int, count: int) -> int:
    """Parts of a row of so many 16-byte vectors: three blocks of 512 threads an SM in all, with a vector for each thread.

    >>> flagged_parts(1, 233_797, 132), flagged_parts(2, 22_117, 132), flagged_parts(100, 2**20, 132)
    (396, 44, 3)
    """
    return max(1, min(FLAGGED_BLOCKS * count // m, -(-vectors // FLAGGED_THREADS)))


def bind_flagged(x_MN: Tensor) -> Launch:
    """Several blocks a row, of which the last waits for the sums of the others. There must be no more rows than SMs, and two
    calls must not run at the same time."""
    import torch

    m, n = x_MN.shape
    parts = flagged_parts(m, -(-n * x_MN.element_size() // VEC16_BYTES), multiprocessors(x_MN.device))
    kernel, out_M = _kernel("row_sum_flagged", x_MN, False, FLAGGED_THREADS)
    slots = torch.zeros(m * parts, dtype=torch.int64, device=x_MN.device)
    sizes = (ctypes.c_int(n), ctypes.c_int(parts))

    def launch() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, slots, out_M))
        nvrtc.launch(kernel, m * parts, FLAGGED_THREADS, *pointers, *sizes)
        return out_M

    return launch


def bind_adaptive(x_MN: Tensor, argmax: bool) -> Launch:
    """A warp a row, one block per row or several blocks per row, by the number and length of the rows."""
    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    row_bytes = n * x_MN.element_size()
    count = multiprocessors(x_MN.device)
    # Half of the 64 warps that an SM holds keep its share of the memory busy, at four vectors a thread.
    longest = LONGEST_ROW_OF_A_WARP_ARGMAX_BYTES if argmax else LONGEST_ROW_OF_A_WARP_BYTES
    if row_bytes <= longest and m >= 32 * count:
        return bind_row_per_warp(x_MN, argmax)
    return bind_split_row(x_MN, argmax) if parts_for(m, row_bytes, count) > 1 else bind_row_per_block(x_MN, argmax)


def threads_for(piece_bytes: int) -> int:
    """128 to 512 threads, each with eight 16-byte vectors.

    >>> [threads_for(b) for b in (100, 16384, 32768, 2**20)]
    [128, 128, 256, 512]
    """
    return max(128, min(512, 1 << (max(1, piece_bytes // 128) - 1).bit_length()))


def parts_for(m: int, row_bytes: int, count: int) -> int:
    """Parts of a row on a GPU of `count` SMs: four blocks an SM in all, as many as are resident at once, at least 8 KiB a part.

    >>> parts_for(1, 2**21, 132), parts_for(17, 2**24, 132), parts_for(100, 2**21, 132), parts_for(2048, 2**18, 132)
    (256, 31, 6, 1)
    """
    parts = 4 * count // m
    return max(1, min(parts if parts >= FEW_PARTS else -(-4 * count // m), -(-row_bytes // SHORTEST_PART_BYTES)))


def _kernel(name: str, x_MN: Tensor, argmax: bool, threads: int) -> tuple[object, Tensor]:
    import torch

    require_contiguous(x_MN=x_MN)
    if max(x_MN.shape) >= 2**31:
        raise BadField("size", max(x_MN.shape), "this kernel counts rows and indices in a row in 32 bits")
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype), "THREADS": str(threads)} | ({"ARGMAX": "1"} if argmax else {})
    out_M = torch.empty(x_MN.shape[0], dtype=torch.int64 if argmax else x_MN.dtype, device=x_MN.device)
    return nvrtc.kernel(SOURCE, name, defines), out_M


def _bind(name: str, x_MN: Tensor, argmax: bool, *, blocks: int, threads: int) -> Launch:
    kernel, out_M = _kernel(name, x_MN, argmax, threads)
    pointers = (x_MN.data_ptr(), out_M.data_ptr())
    sizes = (ctypes.c_int(x_MN.shape[0]), ctypes.c_int(x_MN.shape[1]))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *pointers, *sizes)
        return out_M

    return launch


@dataclass(frozen=True, slots=True)
class StreamTile:
    """How `headers/streamed_rows.cuh` lays threads over rows.

    Threads that share a row, 16-byte vectors that a thread processes while as many are prefetched, rows a block, blocks an SM.
    """

    lanes: int
    group: int
    rows: int = 1
    resident: int = 1

    @property
    def threads(self) -> int:
        return self.lanes * self.rows

    def defines(self, element: str, *, aligned: bool) -> dict[str, str]:
        """What the kernels are compiled with for rows of such elements; `aligned`: rows are whole vectors."""
        return {
            "ELEMENT": element,
            "ROW_LANES": str(self.lanes),
            "ROW_GROUP": str(self.group),
            "ROW_ROWS": str(self.rows),
            "ROW_RESIDENT": str(self.resident),
            "ROW_ALIGNED": "true" if aligned else "false",
        }


def power_of_2(n: int) -> int:
    """The smallest power of 2 that is not below n.

    >>> [power_of_2(n) for n in (0, 1, 3, 64)]
    [1, 1, 4, 64]
    """
    return 1 << max(0, n - 1).bit_length()


def stream_tile(m: int, vectors: int, count: int) -> StreamTile:
    """The tile for m rows of so many 16-byte vectors on a GPU of `count` SMs: one warp per row for many short rows, else a block.

    A block has as many threads as give each SM 1024 in all and each thread at least one vector. With eight vectors a thread,
    64 to 128 KiB of an SM are in flight.

    >>> stream_tile(32768, 256, 132), stream_tile(16384, 512, 132)
    (StreamTile(lanes=32, group=4, rows=4, resident=8), StreamTile(lanes=128, group=2, rows=1, resident=12))
    >>> stream_tile(2048, 4096, 132), stream_tile(512, 16384, 132)
    (StreamTile(lanes=256, group=4, rows=1, resident=4), StreamTile(lanes=256, group=4, rows=1, resident=4))
    >>> stream_tile(16, 512, 132), stream_tile(1, 1, 132)
    (StreamTile(lanes=512, group=1, rows=1, resident=3), StreamTile(lanes=32, group=1, rows=1, resident=32))
    """
    if vectors <= LONGEST_ROW_OF_A_WARP_VECTORS and m >= 8 * count:
        return resident_tile(32, vectors, rows=4)
    # 2048 rows of 32,768: 4134 GB/s with 256 threads a row, 4024 with 128.
    threads = 1024 // max(1, min(4 if vectors > 2048 else 8, -(-m // count)))
    return resident_tile(max(32, min(1 << threads.bit_length() - 1, power_of_2(vectors))), vectors)


def resident_tile(lanes: int, vectors: int, *, rows: int = 1) -> StreamTile:
    """The tile with that many threads per row: up to four vectors a group, with 64 registers a thread for four and 40 for fewer.

    An SM has room for 32 blocks.

    >>> resident_tile(128, 1024), resident_tile(1024, 1024)
    (StreamTile(lanes=128, group=4, rows=1, resident=8), StreamTile(lanes=1024, group=1, rows=1, resident=1))
    """
    group = min(4, power_of_2(-(-vectors // (2 * lanes))))
    return StreamTile(lanes, group, rows, min(32, (1024 if group == 4 else 1536) // (lanes * rows)))


def stream_parts_for(m: int, row_bytes: int, count: int) -> int:
    """Parts of a row on a GPU of `count` SMs: two blocks an SM in all, where rows are long and fewer than that.

    >>> [stream_parts_for(m, b, 132) for m, b in ((1, 2**21), (64, 2**21), (512, 2**18), (16, 2**13))]
    [256, 5, 1, 1]
    """
    if row_bytes <= SHORTEST_SPLIT_BYTES or m >= 2 * count:
        return 1
    return max(1, min(-(-2 * count // m), -(-row_bytes // SHORTEST_PART_BYTES)))


def row_sum_tile(m: int, vectors: int, count: int) -> StreamTile:
    """The tile for m rows of so many 16-byte vectors on a GPU of `count` SMs: 512 threads per row, two to four vectors each.

    One vector each where a row has no more of them: 16 rows of 4096 in bf16 then take 1.7 us instead of 1.9. An SM has up to
    2048 threads: 8192 rows of 8192 read 4140 GB/s (by events, warm writes), with 1536 threads 3857.

    >>> row_sum_tile(8192, 1024, 132), row_sum_tile(16, 512, 132)
    (StreamTile(lanes=512, group=2, rows=1, resident=4), StreamTile(lanes=512, group=1, rows=1, resident=4))
    >>> row_sum_tile(16384, 512, 132), row_sum_tile(4, 100, 132)
    (StreamTile(lanes=256, group=2, rows=1, resident=8), StreamTile(lanes=128, group=1, rows=1, resident=16))
    """
    if m < 2 * count:
        lanes = max(32, min(FEW_ROWS_THREADS, power_of_2(vectors)))
        return StreamTile(lanes, min(2, power_of_2(-(-vectors // lanes))), resident=2048 // lanes if lanes > 64 else 32)
    lanes = max(32, min(512, power_of_2(-(-vectors // 2))))
    return StreamTile(lanes, 2, resident=min(32, 2048 // lanes))


def bind_streamed(x_MN: Tensor, *, tile: StreamTile | None = None) -> Launch:
    """A block a row of a contiguous matrix (M, N); raises BadField if not contiguous.

    Many short rows go to the kernel of `bind_adaptive` with a warp a row; few long ones have several blocks each, of which one
    waits for the others, if there are no more rows than SMs.
    `tile` replaces the one chosen by the number and length of the rows.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if m >= 2**31 or n > LONGEST_ROW_STREAMED:
        raise BadField("size", max(m, n), "this kernel counts rows and indices in a row in 32 bits")
    size, count = x_MN.element_size(), multiprocessors(x_MN.device)
    if tile is None and n * size <= LONGEST_ROW_OF_A_WARP_BYTES and m >= 32 * count:
        return bind_row_per_warp(x_MN, argmax=False)
    if tile is None and stream_parts_for(m, n * size, count) > 1:
        return bind_flagged(x_MN) if m <= count else bind_split_row(x_MN, argmax=False)
    width = VEC16_BYTES // size
    tile = tile or row_sum_tile(m, -(-n // width), count)
    aligned = n % width == 0 and x_MN.data_ptr() % VEC16_BYTES == 0
    kernel = nvrtc.kernel(
        STREAMED_SOURCE, "row_sum_streamed", tile.defines(nvrtc.element_type(x_MN.dtype), aligned=aligned)
    )
    out_M = torch.empty(m, dtype=x_MN.dtype, device=x_MN.device)
    lanes, length = tile.lanes, ctypes.c_int(n)

    def launch() -> Tensor:
        nvrtc.launch(kernel, m, lanes, x_MN.data_ptr(), out_M.data_ptr(), length)
        return out_M

    return launch


def bind_argmax_vec16(x_MN: Tensor, *, tile: StreamTile | None = None, parts: int = 0) -> Launch:
    """A warp, a block or several blocks per row of a contiguous matrix (M, N); raises BadField if not contiguous.

    `tile` and `parts` replace those chosen by the number and length of the rows.
    """
    import torch

    require_contiguous(x_MN=x_MN)
    m, n = x_MN.shape
    if m >= 2**31 or n > LONGEST_ROW_ARGMAX_VEC16:
        raise BadField("size", max(m, n), "this kernel counts rows and indices in a row in 32 bits")
    size, count = x_MN.element_size(), multiprocessors(x_MN.device)
    width = VEC16_BYTES // size
    parts = parts or stream_parts_for(m, n * size, count)
    # Whole vectors, so that all parts of an aligned row are aligned.
    part = -(-n // (width * parts)) * width
    parts = -(-n // part)
    aligned = n % width == 0 and x_MN.data_ptr() % VEC16_BYTES == 0
    out_M = torch.empty(m, dtype=torch.int64, device=x_MN.device)
    if parts == 1:
        tile = tile or stream_tile(m, -(-n // width), count)
    else:
        tile = tile or resident_tile(256 if part * size >= 32 * 1024 else 128, part // width)
    defines = tile.defines(nvrtc.element_type(x_MN.dtype), aligned=aligned)
    kernel = nvrtc.kernel(ARGMAX_VEC16_SOURCE, "argmax_vec16" if parts == 1 else "argmax_vec16_split", defines)
    blocks, threads = -(-m // tile.rows), tile.threads
    row_sizes = (ctypes.c_int(m), ctypes.c_int(n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, x_MN.data_ptr(), out_M.data_ptr(), *row_sizes)
        return out_M

    if parts == 1:
        return launch
    keys = torch.empty(m * parts, dtype=torch.int32, device=x_MN.device)
    indices = torch.empty(m * parts, dtype=torch.int32, device=x_MN.device)
    tickets = torch.zeros(m, dtype=torch.int32, device=x_MN.device)
    part_sizes = (ctypes.c_int(n), ctypes.c_int(parts), ctypes.c_int(part))

    def launch_split() -> Tensor:
        # Addresses are taken here, so that the launch keeps alive the tensors that only it owns.
        pointers = (t.data_ptr() for t in (x_MN, keys, indices, tickets, out_M))
        nvrtc.launch(kernel, m * parts, threads, *pointers, *part_sizes)
        return out_M

    return launch_split
