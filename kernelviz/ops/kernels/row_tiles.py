"""How kernels of `headers/rows.cuh` lay out a row: threads that share it, words a thread, blocks a row, rows a block."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

THREADS_A_MULTIPROCESSOR = 1024
"""With 64 registers each. They have 64 KiB of rows under way between them, which hides the memory's latency."""
THREADS_OF_SHORT_ROWS = 128
"""Of a block whose rows lie in a warp or less."""
LONGEST_BLOCK = 1024
LONGEST_ROW_WORDS = 4096
"""Rows beyond 64 KiB are held in shared memory as well: registers alone have too few of them under way."""
MOST_FAR = 14
"""16-byte words a thread in shared memory, where an SM has 1024 threads: 224 of its 227 KiB."""
CLUSTER = 8
"""Blocks of a cluster that every GPU with clusters grants (CUDA C++ Programming Guide, "Thread Block Clusters")."""


@dataclass(frozen=True, slots=True)
class Shape:
    """Threads of a block that share a row, 16-byte words a thread, blocks a row, rows a block.

    `raw`: the words are kept as they are, not as powers in fp32. `far`: how many of the words are kept in shared memory, the
    others in registers (`headers/held.cuh`). `resident`: threads an SM, for which registers must suffice.
    """

    lanes: int
    words: int
    cluster: int = 1
    rows: int = 1
    raw: bool = False
    far: int = 0
    resident: int = THREADS_A_MULTIPROCESSOR

    @property
    def threads(self) -> int:
        return self.lanes * self.rows

    @property
    def row_words(self) -> int:
        return self.lanes * self.words * self.cluster

    @property
    def shared_bytes(self) -> int:
        """Of dynamic shared memory a block and a tensor."""
        return 16 * self.lanes * self.far

    @property
    def asked_bytes(self) -> int:
        """What `nvrtc.kernel` is told of it: with what the kernel has beside it, 48 KiB are too much already."""
        return max(self.shared_bytes, 48 * 1024 + 16) if self.far else 0

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """What a kernel is compiled with for rows of this matrix."""
        return {
            "ELEMENT": nvrtc.element_type(x_MN.dtype),
            "ROW_LANES": str(self.lanes),
            "ROW_WORDS": str(self.words),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_ROWS": str(self.rows),
            "ROW_ALIGNED": "true" if x_MN.shape[1] * x_MN.element_size() % 16 == 0 else "false",
            "ROW_THREADS": str(self.threads),
            "ROW_RESIDENT": str(max(1, self.resident // self.threads)),
            "ROW_RAW": str(int(self.raw)),
            "ROW_NEAR": str(self.words - self.far),
            "ROW_FAR": str(self.far),
        }


CHUNKS = Shape(lanes=512, words=4)
"""Of rows that are walked."""


def words_of(n: int, itemsize_bytes: int) -> int:
    """The most 16-byte words that a row may touch: one more where rows start anywhere in one.

    >>> words_of(1024, 2), words_of(7, 2), words_of(50257, 2)
    (128, 2, 6283)
    """
    width = 16 // itemsize_bytes
    return n // width if n % width == 0 else -(-(n + width - 1) // width)


def row_shape(n: int, itemsize_bytes: int, words: int | None = None) -> Shape | None:
    """A row in the registers of one block of up to 1024 threads; None where it is too long.

    32 elements a thread, since their powers are kept in fp32; twice as many of half precision, kept as they are, where a block
    would be more than half of what the SM holds (rows of 64 KiB, softmax: 4171 against 3836 GB/s). `words` says otherwise.

    >>> row_shape(128, 2).rows, row_shape(8192, 2).lanes, row_shape(32768, 2).words, row_shape(32769, 4)
    (32, 256, 8, None)
    """
    row_words = words_of(n, itemsize_bytes)
    each = words or 2 * itemsize_bytes
    threads = -(-row_words // each)
    if threads <= 32:
        lanes = 1 << (threads - 1).bit_length()
        return Shape(lanes, each, rows=THREADS_OF_SHORT_ROWS // lanes)
    raw = not words and itemsize_bytes == 2 and threads > 512
    if raw:
        each *= 2
        threads = -(-row_words // each)
    lanes = -(-threads // 32) * 32
    return Shape(lanes, each, raw=raw) if lanes <= LONGEST_BLOCK else None


def held_shape(n: int, itemsize_bytes: int, tensors: int = 1, words: int | None = None) -> Shape | None:
    """A row in the registers of a block where it is short, else in registers and shared memory; None where 8 SMs cannot hold it.

    As many blocks an SM as there is room for, with 1024 threads between them; 4 words a thread in registers (5 where only that
    lets one SM hold the row). `tensors` rows are held side by side.

    >>> held_shape(131072, 2).lanes, held_shape(131072, 2).far, held_shape(65536, 2).lanes, held_shape(262144, 2).cluster
    (1024, 12, 512, 2)
    """
    row_words = words_of(n, itemsize_bytes)
    if row_words <= LONGEST_ROW_WORDS // tensors**2:
        return row_shape(n, itemsize_bytes, words)
    near = 4 // tensors
    for cluster in (1, 2, 4, CLUSTER):
        part = -(-row_words // cluster)
        for more in (0, 1):
            room = (near + more) + MOST_FAR // tensors
            blocks = THREADS_A_MULTIPROCESSOR * room // part
            if blocks == 0 or (more and tensors > 1):
                continue
            lanes = min(1024, THREADS_A_MULTIPROCESSOR // blocks // 32 * 32)
            each = -(-part // lanes)
            # The sums of eight blocks take 4 KiB of each one's shared memory.
            if each - near - more <= (MOST_FAR - cluster // 8) // tensors:
                return Shape(lanes, each, cluster, far=each - near - more)
    return None


def cluster_shape(x_MN: Tensor, tensors: int = 1, words: int | None = None) -> Shape | None:
    """`held_shape` of a matrix (M, N), or, where its rows are too few to occupy all SMs, a row in the registers of more of them.

    Four words a thread then, or `words`: 16 rows of 128256 on 128 blocks instead of 16.
    """
    (m, n), itemsize = x_MN.shape, x_MN.element_size()
    cluster = CLUSTER
    while cluster > 1 and m * cluster > multiprocessors(x_MN.device):
        cluster //= 2
    row_words = words_of(n, itemsize)
    each = words or 4
    lanes = -(-row_words // (32 * each * cluster)) * 32
    if cluster > 1 and lanes >= 64 and lanes <= LONGEST_BLOCK:
        return Shape(lanes, each, cluster)
    return held_shape(n, itemsize, tensors, words)


def require_words(**tensors: Tensor) -> None:
    """Raises BadField for a tensor that is not contiguous or does not start on 16 bytes: loads of words would fault."""
    require_contiguous(**tensors)
    for name, tensor in tensors.items():
        if tensor.data_ptr() % 16:
            raise BadField(f"input {name}", "a view that does not start on 16 bytes", "call .clone() first")
