"""Tiles of the kernels of `headers/rows.cuh`: threads that share a row, 16-byte vectors a thread, blocks a row, rows a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

THREADS_PER_MULTIPROCESSOR = 1024
"""With 64 registers each. Together they have 64 KiB of loads in flight, which hides the latency of memory."""
THREADS_OF_SHORT_ROWS = 128
"""Threads of a block where a warp or less shares a row."""
LONGEST_BLOCK = 1024
LONGEST_ROW_VECTORS = 4096
"""Longer rows (beyond 64 KiB) are kept in shared memory as well: registers alone allow too few loads in flight."""
MOST_IN_SHARED = 14
"""16-byte vectors a thread in shared memory where an SM has 1024 threads: 224 of its 227 KiB."""
CLUSTER = 8
"""Blocks of a cluster that every GPU with clusters grants (CUDA C++ Programming Guide, "Thread Block Clusters")."""


@dataclass(frozen=True, slots=True)
class RowTile:
    """Threads of a block that share a row, 16-byte vectors a thread, blocks a row, rows a block.

    `raw`: the vectors are kept as loaded, not as exponentials in fp32. `in_shared`: how many of a thread's vectors are kept in
    shared memory; the rest are in registers (`headers/on_chip_rows.cuh`). `resident`: threads an SM that registers must allow.
    """

    lanes: int
    vectors: int
    cluster: int = 1
    rows: int = 1
    raw: bool = False
    in_shared: int = 0
    resident: int = THREADS_PER_MULTIPROCESSOR

    @property
    def threads(self) -> int:
        return self.lanes * self.rows

    @property
    def row_vectors(self) -> int:
        return self.lanes * self.vectors * self.cluster

    @property
    def shared_bytes(self) -> int:
        """Dynamic shared memory of a block for one tensor."""
        return 16 * self.lanes * self.in_shared

    @property
    def opt_in_bytes(self) -> int:
        """Dynamic shared memory to opt in for (`nvrtc.kernel`): with the kernel's static shared memory even 48 KiB need it."""
        return max(self.shared_bytes, 48 * 1024 + 16) if self.in_shared else 0

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """Macros that a kernel is compiled with for rows of this matrix."""
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "ROW_LANES": str(self.lanes),
            "ROW_VECTORS": str(self.vectors),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_ROWS": str(self.rows),
            "ROW_ALIGNED": "true" if x_MN.shape[1] * x_MN.element_size() % 16 == 0 else "false",
            "ROW_THREADS": str(self.threads),
            "ROW_RESIDENT": str(max(1, self.resident // self.threads)),
            "ROW_RAW": str(int(self.raw)),
            "ROW_IN_REGISTERS": str(self.vectors - self.in_shared),
            "ROW_IN_SHARED": str(self.in_shared),
        }


CHUNKS = RowTile(lanes=512, vectors=4)
"""Of rows that a block reads in chunks, one after the other."""


def vectors_of_row(n: int, itemsize_bytes: int) -> int:
    """The most 16-byte vectors that a row may touch: one more where a row may start inside of a vector.

    >>> vectors_of_row(1024, 2), vectors_of_row(7, 2), vectors_of_row(50257, 2)
    (128, 2, 6283)
    """
    width = 16 // itemsize_bytes
    return n // width if n % width == 0 else -(-(n + width - 1) // width)


def row_tile(n: int, itemsize_bytes: int, vectors: int | None = None) -> RowTile | None:
    """The tile of a row in the registers of one block of up to 1024 threads; None where the row is too long.

    32 elements a thread, since their exponentials are kept in fp32; twice as many of half precision, kept as loaded, where a
    block would take more than half of an SM (rows of 64 KiB, softmax: 4171 instead of 3836 GB/s). `vectors` overrides this.

    >>> row_tile(128, 2).rows, row_tile(8192, 2).lanes, row_tile(32768, 2).vectors, row_tile(32769, 4)
    (32, 256, 8, None)
    """
    row_vectors = vectors_of_row(n, itemsize_bytes)
    each = vectors or 2 * itemsize_bytes
    threads = -(-row_vectors // each)
    if threads <= 32:
        lanes = 1 << (threads - 1).bit_length()
        return RowTile(lanes, each, rows=THREADS_OF_SHORT_ROWS // lanes)
    raw = not vectors and itemsize_bytes == 2 and threads > 512
    if raw:
        each *= 2
        threads = -(-row_vectors // each)
    lanes = -(-threads // 32) * 32
    return RowTile(lanes, each, raw=raw) if lanes <= LONGEST_BLOCK else None


def on_chip_tile(n: int, itemsize_bytes: int, tensors: int = 1, vectors: int | None = None) -> RowTile | None:
    """The tile of a row in the registers of a block where it is short, else in registers and shared memory.

    As many blocks an SM as there is room for, with 1024 threads in all; 4 vectors a thread in registers (5 where only that lets
    one SM hold the row). Rows of `tensors` tensors are held at once. None where 8 SMs cannot hold the row.

    >>> on_chip_tile(131072, 2).lanes, on_chip_tile(131072, 2).in_shared
    (1024, 12)
    >>> on_chip_tile(65536, 2).lanes, on_chip_tile(262144, 2).cluster
    (512, 2)
    """
    row_vectors = vectors_of_row(n, itemsize_bytes)
    if row_vectors <= LONGEST_ROW_VECTORS // tensors**2:
        return row_tile(n, itemsize_bytes, vectors)
    in_registers = 4 // tensors
    for cluster in (1, 2, 4, CLUSTER):
        part = -(-row_vectors // cluster)
        for more in (0, 1):
            room = (in_registers + more) + MOST_IN_SHARED // tensors
            blocks = THREADS_PER_MULTIPROCESSOR * room // part
            if blocks == 0 or (more and tensors > 1):
                continue
            lanes = min(1024, THREADS_PER_MULTIPROCESSOR // blocks // 32 * 32)
            each = -(-part // lanes)
            # The sums of eight blocks take 4 KiB of each one's shared memory.
            if each - in_registers - more <= (MOST_IN_SHARED - cluster // 8) // tensors:
                return RowTile(lanes, each, cluster, in_shared=each - in_registers - more)
    return None


def cluster_tile(x_MN: Tensor, tensors: int = 1, vectors: int | None = None) -> RowTile | None:
    """`on_chip_tile` of a matrix (M, N); where its rows are too few to occupy all SMs, a tile of more blocks a row.

    That tile has four vectors a thread, or `vectors`: 16 rows of 128256 on 128 blocks instead of 16.
    """
    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    cluster = CLUSTER
    while cluster > 1 and m * cluster > multiprocessors(x_MN.device):
        cluster //= 2
    row_vectors = vectors_of_row(n, itemsize)
    each = vectors or 4
    lanes = -(-row_vectors // (32 * each * cluster)) * 32
    if cluster > 1 and lanes >= 64 and lanes <= LONGEST_BLOCK:
        return RowTile(lanes, each, cluster)
    return on_chip_tile(n, itemsize, tensors, vectors)


def require_vec16(**tensors: Tensor) -> None:
    """Raises BadField for a tensor that is not contiguous or does not start on 16 bytes: 16-byte loads would fault."""
    require_contiguous(**tensors)
    for name, tensor in tensors.items():
        if tensor.data_ptr() % 16:
            raise BadField(f"input {name}", "a view that does not start on 16 bytes", "call .clone() first")
