"""CUDA C++ kernels of `norm_activation` and `batchnorm_relu`, bound to tensors."""

from __future__ import annotations

import ctypes
import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.flat_rows import flat_stride
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.grid_limits import LARGEST_GRID_Y
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.one_element import OneElement
from kernelviz.ops.kernels.persistent_columns import columns_tile

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
FLAT_SOURCE = Path(__file__).parent / "cuda_flat.cu"
COLUMNS_SOURCE = Path(__file__).parent / "cuda_columns.cu"
ONE_ELEMENT_SOURCE = Path(__file__).parent / "cuda_one_element.cu"
FEW_COLUMNS_SOURCE = Path(__file__).parent / "cuda_few_columns.cu"
VEC16_BYTES = 16
LONGEST_BLOCK_VECTORS = 4096
"""The longest row that the registers of one block hold, with a second block on the SM: 512 threads with eight vectors, 64 KiB."""
MOST_CLUSTER = 8
DEEP = 8
"""The most rows of a thread of the batchnorm kernel for rows that are whole 16-byte vectors."""
FEW_ELEMENTS = 2**15
"""Of a matrix up to which a thread of the batchnorm kernel has one: they take the latency of a load and of what precedes it."""
WARP, ROW_THREADS, MOST_ROWS_OF_BLOCKS = 32, 128, 256
"""With one element a thread: the most threads of a block that has a part of one row, and the most such blocks, about two for
each multiprocessor of an H200."""
FLAT_THREADS, FLAT_ROWS, FLAT_MOST = 256, 4, 16
"""For other rows: threads of a block, vectors of a thread in flight at once, and the most that have the same channels."""
LEAST_GROUPS = 8
"""With fewer, the last one could leave many threads without work."""
GROUPED_BYTES, GROUP_STRIDE, GROUP_ROWS_BYTES = 2**26, 8192, 8
"""Of other rows: bytes of a matrix that is walked in groups of adjacent rows, because no L2 holds it; the least distance of a
thread's vectors there; and its vectors times bytes of an element. With vectors of all parts of the matrix, an H200 takes 723 us
for 116,407 x 3086 fp32, and by inductor's kernel, which walks it in order, 677."""


@dataclass(frozen=True, slots=True)
class RowTile:
    """Threads that share a row, 16-byte vectors of each, blocks that share a row, rows of a block, blocks an SM."""

    lanes: int = 32
    vectors: int = 1
    cluster: int = 1
    rows: int = 1
    blocks: int = 1


def row_tile(vectors: int, *, clusters: bool) -> RowTile | None:
    """The tile for rows of that many 16-byte vectors; None for rows that blocks cannot hold.

    Two vectors a thread where a block can have enough threads, otherwise four or eight, with 32, 40 and 64 registers.

    >>> row_tile(16, clusters=False), row_tile(512, clusters=False)
    (RowTile(lanes=16, vectors=1, cluster=1, rows=8, blocks=12), RowTile(lanes=256, vectors=2, cluster=1, rows=1, blocks=8))
    >>> row_tile(4096, clusters=False), row_tile(16384, clusters=True), row_tile(16384, clusters=False)
    (RowTile(lanes=512, vectors=8, cluster=1, rows=1, blocks=2), RowTile(lanes=256, vectors=8, cluster=8, rows=1, blocks=4), None)
    """
    if vectors <= 128:
        lanes = min(32, 1 << max(0, vectors - 1).bit_length())
        return RowTile(lanes, -(-vectors // lanes), 1, 128 // lanes, 12)
    if vectors <= LONGEST_BLOCK_VECTORS:
        each = 2 if vectors <= 1024 else 4 if vectors <= 2048 else 8
        lanes = 32 * -(-vectors // (32 * each))
        return RowTile(lanes, each, blocks={2: 2048, 4: 1536, 8: 1024}[each] // lanes)
    if not clusters:
        return None
    lanes = 32 * -(-vectors // (32 * 8 * MOST_CLUSTER))
    return RowTile(lanes, 8, MOST_CLUSTER, blocks=max(1, 1024 // lanes)) if lanes <= 1024 else None


def bind_rows(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """A block a row, read once up to 64 KiB and twice beyond. Errors: BadField for tensors that are not contiguous or aligned."""
    return _bind_rows(x_MN, w_N, b_N, eps, clusters=False)


def bind_cluster(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """A cluster of blocks per row of more than 64 KiB; one of more than 1 MiB is read twice. Errors as above."""
    return _bind_rows(x_MN, w_N, b_N, eps, clusters=True)


def _require_aligned(**tensors: Tensor) -> None:
    """Raises BadField naming a tensor that is not contiguous or does not start on 16 bytes."""
    require_contiguous(**tensors)
    for name, tensor in tensors.items():
        if tensor.data_ptr() % VEC16_BYTES:
            raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")


def _defines(x_MN: Tensor, tile: RowTile) -> dict[str, str]:
    return {
        "ELEMENT": nvrtc.element_type(x_MN.dtype),
        "ROW_LANES": str(tile.lanes),
        "ROW_VECTORS": str(tile.vectors),
        "ROW_CLUSTER": str(tile.cluster),
        "ROW_ROWS": str(tile.rows),
        "ROW_BLOCKS": str(tile.blocks),
        "ROW_ALIGNED": "true" if x_MN.shape[1] % (VEC16_BYTES // x_MN.element_size()) == 0 else "false",
    }


def _bind_rows(x_MN: Tensor, w_N: Tensor, b_N: Tensor, eps: float, *, clusters: bool) -> Launch:
    import torch

    _require_aligned(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    width = VEC16_BYTES // x_MN.element_size()
    # Rows that may start anywhere in a vector touch one more.
    tile = row_tile(n // width if n % width == 0 else (n + 2 * width - 2) // width, clusters=clusters)
    name = "layernorm_gelu_rows" if tile is not None else "layernorm_gelu_long_rows"
    tile = tile or RowTile(1024)
    kernel = nvrtc.kernel(SOURCE, name, _defines(x_MN, tile), cluster=tile.cluster)
    blocks, threads, cluster = tile.cluster * -(-m // tile.rows), tile.lanes * tile.rows, tile.cluster
    y_MN = torch.empty_like(x_MN)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster)
        return y_MN

    return launch


def batchnorm_tile(m: int, across: int, count: int, deep: int | None = None) -> tuple[int, int, int]:
    """Threads of a block along a row of `across` vectors and down, and rows of a thread: at most `deep`, or as many as there are.

    Fewer of each where the GPU's `count` SMs would otherwise have fewer than two blocks each.

    >>> batchnorm_tile(8192, 1024, 132), batchnorm_tile(200704, 32, 132), batchnorm_tile(16, 512, 132)
    ((256, 1, 8), (32, 8, 8), (64, 1, 1))
    >>> batchnorm_tile(1, 2**22, 132), batchnorm_tile(3, 2**22, 132)
    ((256, 1, 1), (256, 1, 4))
    """
    # A thread with one row of a few loads its channels as vectors, and has no registers for rows that do not exist.
    threads, deep = 256, min(deep or DEEP, 1 << (m - 1).bit_length())
    while True:
        wide = min(threads, 1 << (across - 1).bit_length())
        tall = threads // wide
        if threads == 64 or -(-m // (deep * tall)) * -(-across // wide) >= 2 * count:
            return wide, tall, deep
        threads, deep = (threads, deep // 2) if deep > 1 else (threads // 2, deep)


def flat_batchnorm(m: int, n: int, width: int, count: int, most: int = FLAT_MOST) -> tuple[int, int]:
    """How many vectors of `width` elements lie between two that a thread processes, and how many of its vectors are in flight.

    A thread has fewer where `count` SMs would otherwise have less than two blocks each.

    >>> flat_batchnorm(2**20, 13, 8, 132), flat_batchnorm(3, 2**20 + 1, 8, 132), flat_batchnorm(100, 13, 8, 132)
    ((106496, 4), (393216, 1), (162, 1))
    """
    whole = m * n // width
    most = max(1, min(most, whole // max(1, 2 * count * FLAT_THREADS)))
    stride, rows = flat_stride(whole, n, width, most)
    return stride, min(FLAT_ROWS, 1 << (rows - 1).bit_length())


@dataclass(frozen=True, slots=True)
class FlatGroups:
    """Groups of adjacent rows: vectors from one that a thread processes to its next, how many it has, blocks of a group, and the
    number of groups."""

    stride: int
    rows: int
    blocks: int
    groups: int

    @property
    def reach(self) -> int:
        """Vectors of a group."""
        return self.stride * self.rows

    def defines(self, x_MN: Tensor) -> dict[str, str]:
        """What the kernel is compiled with."""
        grouped = str(int(self.groups > 1))
        return {"ELEMENT": nvrtc.element_type(x_MN.dtype), "ROWS": str(self.rows), "GROUPED": grouped}


def flat_groups(
    m: int, n: int, itemsize_bytes: int, *, least_bytes: int = GROUPED_BYTES, least: int = GROUP_STRIDE
) -> FlatGroups | None:
    """Groups of a matrix (m, n) of more than `least_bytes`; None for a smaller one, and where a group would be much of it.

    >>> flat_groups(116407, 3086, 4), flat_groups(2**27, 3, 2)
    (FlatGroups(stride=9258, rows=2, blocks=37, groups=4851), FlatGroups(stride=8193, rows=4, blocks=33, groups=1536))
    >>> flat_groups(2**20, 3, 4), flat_groups(5, 2**27 + 1, 4)
    (None, None)
    """
    width = VEC16_BYTES // itemsize_bytes
    whole, after = divmod(m * n, width)
    period = n // math.gcd(n, width)
    stride = period * -(-least // period)
    rows = GROUP_ROWS_BYTES // itemsize_bytes
    groups = -(-whole // (stride * rows))
    if whole * VEC16_BYTES <= least_bytes or groups < LEAST_GROUPS or stride * rows * width >= 2**31:
        return None
    return FlatGroups(stride, rows, -(-(stride + after) // FLAT_THREADS), groups)


def bind_batchnorm(
    x_MN: Tensor,
    mean_N: Tensor,
    variance_N: Tensor,
    w_N: Tensor,
    b_N: Tensor,
    *,
    eps: float,
    most: int | None = None,
) -> Launch:
    """A thread processes 16-byte vectors of the same channels: of at most `most` rows, or DEEP, or FLAT_MOST where rows are no
    whole vectors or too long for a grid. Of few elements, a thread processes one. Errors as above."""
    import torch

    _require_aligned(x_MN=x_MN, mean_N=mean_N, variance_N=variance_N, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    width, count = VEC16_BYTES // x_MN.element_size(), multiprocessors(x_MN.device)
    y_MN = torch.empty_like(x_MN)
    blocks: nvrtc.Size
    threads: nvrtc.Size
    sizes: tuple[Any, ...]
    across, down, deep = batchnorm_tile(m, -(-n // width), count, most)
    if most is None and m * n <= FEW_ELEMENTS:
        few = few_elements(m, n, eps)
        kernel = nvrtc.kernel(ONE_ELEMENT_SOURCE, few.name, {"ELEMENT": nvrtc.element_type(x_MN.dtype), **few.defines})
        blocks, threads, sizes = few.blocks, few.threads, ()
    elif most is None and n < width and width % n == 0:
        kernel = nvrtc.kernel(
            FEW_COLUMNS_SOURCE,
            "batchnorm_relu_few_columns",
            {"ELEMENT": nvrtc.element_type(x_MN.dtype), "COLUMNS": str(n), "EPS": f"{eps!r}f"},
        )
        blocks, threads = -(-(m * n // width + m * n % width) // FLAT_THREADS), FLAT_THREADS
        sizes = (ctypes.c_longlong(m * n),)
    elif n % width == 0 and n // width <= LARGEST_GRID_Y * across:
        kernel = nvrtc.kernel(SOURCE, "batchnorm_relu_vec16", _defines(x_MN, RowTile(vectors=deep)))
        blocks, threads = (-(-m // (deep * down)), -(-n // (width * across))), (across, down)
        sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps))
    else:
        groups = flat_groups(m, n, x_MN.element_size()) if most is None else None
        stride, rows = flat_batchnorm(m, n, width, count, most or FLAT_MOST)
        if groups is None:
            groups = FlatGroups(stride, rows, -(-(stride + m * n % width) // FLAT_THREADS), 1)
        kernel = nvrtc.kernel(FLAT_SOURCE, "batchnorm_relu_flat", groups.defines(x_MN))
        blocks, threads = groups.blocks * groups.groups, FLAT_THREADS
        sizes = (ctypes.c_longlong(m * n), ctypes.c_longlong(groups.stride), ctypes.c_int(n), ctypes.c_float(eps))
        sizes = (*sizes, ctypes.c_longlong(groups.reach), ctypes.c_int(groups.blocks))
    channels = (mean_N.data_ptr(), variance_N.data_ptr(), w_N.data_ptr(), b_N.data_ptr())
    arguments = (x_MN.data_ptr(), *channels, y_MN.data_ptr(), *sizes)

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, threads, *arguments)
        return y_MN

    return launch


@dataclass(frozen=True, slots=True)
class FewElements:
    """A launch of the batchnorm kernel with one element a thread: its name, its grid, and what it is compiled with."""

    name: str
    blocks: nvrtc.Size
    threads: int
    defines: dict[str, str]


def few_elements(m: int, n: int, eps: float) -> FewElements:
    """For a matrix (m, n) of at most FEW_ELEMENTS: rows of blocks where a row has enough elements for a warp, and few blocks have
    all rows, because then no thread divides; else the matrix as one vector.

    >>> few_elements(16, 221, 1e-5).blocks, few_elements(16, 221, 1e-5).threads, few_elements(300, 3, 1e-5).blocks
    ((2, 16), 128, 8)
    """
    across = -(-n // ROW_THREADS)
    shape = {"COLUMNS": str(n), "EPS": f"{eps!r}f"}
    if n >= WARP and m * across <= MOST_ROWS_OF_BLOCKS:
        threads = -(-n // (across * WARP)) * WARP
        shape |= {"INDEX": "unsigned", "BLOCK_THREADS": str(threads)}
        return FewElements("batchnorm_relu_row_of_blocks", (across, m), threads, shape)
    one = OneElement(m * n)
    return FewElements(
        "batchnorm_relu_one_element", one.blocks, one.threads, shape | one.defines | {"SIZE": str(m * n)}
    )


def bind_columns(x_MN: Tensor, w_N: Tensor, b_N: Tensor, *, eps: float) -> Launch:
    """Persistent blocks or clusters for rows that start on 16 bytes; other, short and very long rows as `bind_cluster`.

    Errors: BadField.
    """
    import torch

    _require_aligned(x_MN=x_MN, w_N=w_N, b_N=b_N)
    m, n = x_MN.shape
    vectors, rest = divmod(n, VEC16_BYTES // x_MN.element_size())
    tile = None if rest else columns_tile(vectors, weighted=True)
    if tile is None:
        return bind_cluster(x_MN, w_N, b_N, eps=eps)
    defines = {"ELEMENT": nvrtc.element_type(x_MN.dtype)} | tile.defines(vectors)
    lanes, cluster, shared = tile.lanes, tile.cluster, tile.shared_bytes
    kernel = nvrtc.kernel(COLUMNS_SOURCE, "layernorm_gelu_columns", defines, cluster=cluster, shared_bytes=shared)
    blocks = min(nvrtc.resident(kernel, lanes, cluster=cluster, shared_bytes=shared), cluster * m)
    y_MN = torch.empty_like(x_MN)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=x_MN.device)
    pointers = (x_MN.data_ptr(), w_N.data_ptr(), b_N.data_ptr(), y_MN.data_ptr())
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(eps), tile_counter.data_ptr())

    def launch() -> Tensor:
        assert tile_counter.numel() == 2  # the launch keeps the tensor alive
        nvrtc.launch(kernel, blocks, lanes, *arguments, cluster=cluster, shared_bytes=shared)
        return y_MN

    return launch
