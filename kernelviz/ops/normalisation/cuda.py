"""CUDA C++ kernels of `rmsnorm`, `layernorm` and `add_rmsnorm`, bound to tensors: one source for the three ops."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
ASYNC_SOURCE = Path(__file__).parent / "cuda_async.cu"
COLUMNS_SOURCE = Path(__file__).parent / "cuda_columns.cu"
FEW_ROWS_SOURCE = Path(__file__).parent / "cuda_few_rows.cu"
VEC16_BYTES = 16
CLUSTER_VECTORS = 2048
"""Of a row for one block of a cluster: 32 KiB, eight vectors of each of 256 threads, so that an SM has four blocks, of which one
loads while another stores."""
MOST_CLUSTER = 16
SHORT_VECTORS = 1024
"""16 KiB: rows of up to as many vectors have a block each."""
FEW_ROWS = 128
"""Up to as many rows, a block a row leaves SMs of an H200 idle."""
LANES = 512
"""Threads of a persistent block, with 128 registers each: weight and bias of four vectors of a 16-bit format take 64 of them."""
MOST_VECTORS = 8
"""Of a row and thread of a persistent block."""
MOST_VECTORS_CENTRED = 6
"""Of a 16-bit format with weight and bias in registers: with seven the compiler spills."""
BUFFERS_BYTES = 224 * 1024
"""Of an SM's 227 KiB for rows in flight; the rest is for the sums that blocks exchange."""
MOST_STAGES = 3
"""More stages are not faster: layernorm of rows of 131,072 in bf16 took 79.1 us with three, 80.1 with four, 81.9 with six."""
MOST_COLUMN_CLUSTER = 8
"""Blocks of a cluster that every GPU with clusters grants."""


@dataclass(frozen=True, slots=True)
class RowTile:
    """Threads that share a row, 16-byte vectors of each, blocks that share a row, rows of a block, blocks an SM."""

    lanes: int
    vectors: int
    cluster: int = 1
    rows: int = 1
    blocks: int = 1

    def defines(self, *, aligned: bool) -> dict[str, str]:
        """What kernels are compiled with; `aligned`: rows are whole vectors."""
        return {
            "ROW_LANES": str(self.lanes),
            "ROW_VECTORS": str(self.vectors),
            "ROW_CLUSTER": str(self.cluster),
            "ROW_ROWS": str(self.rows),
            "ROW_BLOCKS": str(self.blocks),
            "ROW_ALIGNED": "true" if aligned else "false",
        }


def power_of_2(n: int) -> int:
    """The smallest power of 2 that is not below n."""
    return 1 << max(0, n - 1).bit_length()


def block_tile(vectors: int, *, centred: bool = False) -> RowTile | None:
    """The tile in which one block holds rows of that many 16-byte vectors; None if they are too long.

    Few registers a thread, so that some blocks of an SM load while others reduce and store: 32, 40 or, with six vectors, 46 for
    704 threads. `centred`: layernorm.

    >>> block_tile(16), block_tile(512)
    (RowTile(lanes=16, vectors=1, cluster=1, rows=8, blocks=12), RowTile(lanes=256, vectors=2, cluster=1, rows=1, blocks=6))
    >>> block_tile(4096), block_tile(4225)
    (RowTile(lanes=704, vectors=6, cluster=1, rows=1, blocks=2), None)
    """
    if vectors <= 128:
        lanes = min(32, power_of_2(vectors))
        return RowTile(lanes, -(-vectors // lanes), 1, 128 // lanes, 12)
    if vectors <= 256:
        each, resident = 4, 1536
    elif vectors <= 512:
        each, resident = 2, 2048 if centred else 1536
    elif vectors <= 1024:
        each, resident = 2, 2048
    elif vectors <= 2048:
        each, resident = 4, 1536
    else:
        each, resident = 6, 1408
    lanes = 32 * -(-vectors // (32 * each))
    return RowTile(lanes, each, blocks=resident // lanes) if lanes <= 704 else None


def cluster_tile(vectors: int, *, centred: bool = False) -> RowTile | None:
    """The tile in which a cluster holds rows of that many 16-byte vectors; None if they are too long for 16 blocks.

    >>> cluster_tile(16384), cluster_tile(131073)
    (RowTile(lanes=256, vectors=8, cluster=8, rows=1, blocks=4), None)
    """
    if vectors <= CLUSTER_VECTORS:
        return block_tile(vectors, centred=centred)
    cluster = min(MOST_CLUSTER, power_of_2(-(-vectors // CLUSTER_VECTORS)))
    lanes = 32 * -(-vectors // (32 * 8 * cluster))
    return RowTile(lanes, 8, cluster, blocks=max(1, 1024 // lanes)) if lanes <= 1024 else None


@dataclass(frozen=True, slots=True)
class NormInputs:
    """The inputs of a kernel: `r_MN` of add_rmsnorm only, `b_N` of layernorm only."""

    x_MN: Tensor
    w_N: Tensor
    eps: float
    r_MN: Tensor | None = None
    b_N: Tensor | None = None

    def check(self) -> None:
        """Raises BadField naming a tensor that is not contiguous or does not start on 16 bytes."""
        tensors = {"x_MN": self.x_MN, "r_MN": self.r_MN, "w_N": self.w_N, "b_N": self.b_N}
        present = {name: tensor for name, tensor in tensors.items() if tensor is not None}
        require_contiguous(**present)
        for name, tensor in present.items():
            if tensor.data_ptr() % VEC16_BYTES:
                raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")

    @property
    def width(self) -> int:
        """Elements of a 16-byte vector."""
        return VEC16_BYTES // self.x_MN.element_size()

    @property
    def aligned(self) -> bool:
        """Whether every row starts on 16 bytes."""
        return self.x_MN.shape[1] % self.width == 0

    @property
    def row_vectors(self) -> int:
        """16-byte vectors that a row touches, wherever it starts."""
        n = self.x_MN.shape[1]
        return n // self.width if self.aligned else (n + 2 * self.width - 2) // self.width

    def defines(self) -> dict[str, str]:
        """What kernels are compiled with for this op and format."""
        return {
            "ELEMENT": nvrtc.element_type(self.x_MN.dtype),
            "CENTRED": str(int(self.b_N is not None)),
            "ADDS": str(int(self.r_MN is not None)),
        }


def bind_rows(inputs: NormInputs) -> Launch:
    """A block a row, read once up to 64 KiB and twice beyond. Errors: BadField for tensors that are not contiguous or aligned."""
    inputs.check()
    tile = block_tile(inputs.row_vectors, centred=inputs.b_N is not None)
    if tile is not None:
        return _bind_rows(inputs, "normalise_rows", tile)
    return _bind_rows(inputs, "normalise_long_rows", RowTile(1024, 1))


def bind_cluster(inputs: NormInputs) -> Launch:
    """A block a row of up to 16 KiB, a cluster of blocks a longer one; rows of more than 2 MiB are read twice."""
    inputs.check()
    tile = cluster_tile(inputs.row_vectors, centred=inputs.b_N is not None)
    if tile is not None:
        return _bind_rows(inputs, "normalise_rows", tile)
    return _bind_rows(inputs, "normalise_long_rows", RowTile(1024, 1))


def _bind_rows(inputs: NormInputs, name: str, tile: RowTile) -> Launch:
    defines = inputs.defines() | tile.defines(aligned=inputs.aligned)
    kernel = nvrtc.kernel(SOURCE, name, defines, cluster=tile.cluster)
    blocks = tile.cluster * -(-inputs.x_MN.shape[0] // tile.rows)
    return _launch_of(inputs, kernel, blocks, tile.lanes * tile.rows, cluster=tile.cluster)


@dataclass(frozen=True, slots=True)
class AsyncTile:
    """The tile of persistent blocks, and how many of a thread's vectors are prefetched into registers, not shared memory."""

    tile: RowTile
    in_registers: int = 0


def async_tile(vectors: int, tensors: int, *, centred: bool = False) -> AsyncTile | None:
    """The tile of persistent blocks for rows of that many 16-byte vectors of `tensors` tensors; None for short rows.

    Three blocks of 512 threads an SM, or two of 1024, share its 227 KiB of shared memory. A cluster shares longer rows.

    >>> async_tile(1024, 1), async_tile(512, 1)
    (AsyncTile(tile=RowTile(lanes=256, vectors=4, cluster=1, rows=1, blocks=6), in_registers=0), None)
    >>> async_tile(4096, 1), async_tile(16384, 1)
    (AsyncTile(tile=RowTile(lanes=512, vectors=8, cluster=1, rows=1, blocks=3), in_registers=0), \
AsyncTile(tile=RowTile(lanes=1024, vectors=4, cluster=4, rows=1, blocks=2), in_registers=0))
    >>> async_tile(16384, 2), async_tile(131072, 2)
    (AsyncTile(tile=RowTile(lanes=1024, vectors=8, cluster=2, rows=1, blocks=1), in_registers=1), \
AsyncTile(tile=RowTile(lanes=1024, vectors=8, cluster=16, rows=1, blocks=1), in_registers=2))
    """
    if vectors <= 512:
        return None
    if vectors <= 1024 and tensors == 1:
        return AsyncTile(RowTile(256, -(-vectors // 256), blocks=6))
    if vectors * tensors <= 4096:
        return AsyncTile(RowTile(512, -(-vectors // 512), blocks=3))
    cluster = power_of_2(-(-vectors // 4096))
    if tensors == 1 and cluster <= MOST_CLUSTER:
        lanes = 512 if centred else 1024
        return AsyncTile(RowTile(lanes, -(-vectors // (lanes * cluster)), cluster, blocks=3 if centred else 2))
    cluster = power_of_2(-(-vectors // (1024 * (14 // tensors + 1))))
    if cluster > MOST_CLUSTER:
        return None
    each = -(-vectors // (1024 * cluster))
    # The sums that 16 blocks exchange take 4 of the 227 KiB.
    most = (13 if cluster == MOST_CLUSTER else 14) // tensors
    return AsyncTile(RowTile(1024, each, cluster), max(0, each - most))


def bind_async(inputs: NormInputs) -> Launch:
    """Persistent blocks for rows of more than 8 KiB; shorter rows, and rows too long for 16 blocks, as `bind_cluster`."""
    import torch

    inputs.check()
    tensors = 1 if inputs.r_MN is None else 2
    choice = async_tile(inputs.row_vectors, tensors, centred=inputs.b_N is not None)
    if choice is None:
        return bind_cluster(inputs)
    tile = choice.tile
    defines = inputs.defines() | tile.defines(aligned=inputs.aligned) | {"ASYNC_IN_REGISTERS": str(choice.in_registers)}
    shared = (tile.vectors - choice.in_registers) * tile.lanes * VEC16_BYTES * tensors
    kernel = nvrtc.kernel(ASYNC_SOURCE, "normalise_async", defines, cluster=tile.cluster, shared_bytes=shared)
    fit = nvrtc.resident(kernel, tile.lanes, cluster=tile.cluster, shared_bytes=shared)
    blocks = min(fit, tile.cluster * inputs.x_MN.shape[0])
    tile_counter = torch.zeros(2, dtype=torch.int32, device=inputs.x_MN.device)
    return _launch_of(
        inputs, kernel, blocks, tile.lanes, cluster=tile.cluster, shared_bytes=shared, tile_counter=tile_counter
    )


@dataclass(frozen=True, slots=True)
class ColumnTile:
    """The tile of persistent blocks, rows of x with a buffer in shared memory, and whether all vectors of all threads exist."""

    tile: RowTile
    stages: int
    full: bool

    def defines(self) -> dict[str, str]:
        """What the kernel is compiled with."""
        stages = {"COLUMNS_STAGES": str(self.stages), "COLUMNS_FULL": "true" if self.full else "false"}
        return self.tile.defines(aligned=True) | stages

    def shared_bytes(self, tensors: int) -> int:
        """A second tensor has one buffer less, because its buffer is free as soon as the row is added up."""
        return (tensors * self.stages - tensors + 1) * self.tile.lanes * self.tile.vectors * VEC16_BYTES


def column_tile(vectors: int, tensors: int, *, most_vectors: int = MOST_VECTORS) -> ColumnTile | None:
    """The tile of persistent clusters for rows of that many 16-byte vectors of `tensors` tensors; None for short and long rows.

    Up to 32 KiB of a row a block, four vectors a thread; for longer rows, which eight blocks share, more vectors a thread.

    >>> column_tile(16384, 1)
    ColumnTile(tile=RowTile(lanes=512, vectors=4, cluster=8, rows=1, blocks=1), stages=3, full=True)
    >>> column_tile(16384, 2).stages, column_tile(32768, 1).stages, column_tile(4096, 1).tile.cluster
    (4, 3, 2)
    >>> column_tile(1024, 1), column_tile(32769, 1), column_tile(16385, 2)
    (None, None, None)
    """
    if vectors <= SHORT_VECTORS:
        return None
    cluster = min(MOST_COLUMN_CLUSTER, power_of_2(-(-vectors // (4 * LANES))))
    each = -(-vectors // (LANES * cluster))
    # Two tensors share the buffers: with more than four vectors a thread too few rows would be in flight.
    if each > (most_vectors if tensors == 1 else 4):
        return None
    lanes = 32 * -(-vectors // (32 * each * cluster))
    buffers = BUFFERS_BYTES // (lanes * each * VEC16_BYTES)
    stages = min(MOST_STAGES + tensors - 1, (buffers + tensors - 1) // tensors)
    return ColumnTile(RowTile(lanes, each, cluster), stages, vectors == lanes * each * cluster)


def bind_columns(inputs: NormInputs) -> Launch:
    """Persistent clusters for aligned rows of more than 16 KiB, a block a row for a few shorter ones; others as `bind_async`.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    import torch

    inputs.check()
    m = inputs.x_MN.shape[0]
    if inputs.row_vectors <= SHORT_VECTORS and m <= FEW_ROWS:
        return _bind_few_rows(inputs)
    tensors = 1 if inputs.r_MN is None else 2
    biased_16bit = inputs.b_N is not None and inputs.x_MN.element_size() == 2
    choice = column_tile(
        inputs.row_vectors, tensors, most_vectors=MOST_VECTORS_CENTRED if biased_16bit else MOST_VECTORS
    )
    if choice is None or not inputs.aligned:
        return bind_async(inputs)
    tile, shared = choice.tile, choice.shared_bytes(tensors)
    defines = inputs.defines() | choice.defines()
    kernel = nvrtc.kernel(COLUMNS_SOURCE, "normalise_columns", defines, cluster=tile.cluster, shared_bytes=shared)
    fit = nvrtc.resident(kernel, tile.lanes, cluster=tile.cluster, shared_bytes=shared)
    blocks = min(fit, tile.cluster * m)
    tile_counter = torch.zeros(2, dtype=torch.int32, device=inputs.x_MN.device)
    return _launch_of(
        inputs, kernel, blocks, tile.lanes, cluster=tile.cluster, shared_bytes=shared, tile_counter=tile_counter
    )


def _bind_few_rows(inputs: NormInputs) -> Launch:
    tile = RowTile(32 * -(-inputs.row_vectors // 32), 1)
    kernel = nvrtc.kernel(
        FEW_ROWS_SOURCE, "normalise_few_rows", inputs.defines() | tile.defines(aligned=inputs.aligned)
    )
    return _launch_of(inputs, kernel, inputs.x_MN.shape[0], tile.lanes)


def _launch_of(
    inputs: NormInputs,
    kernel: Any,
    blocks: int,
    threads: int,
    *,
    cluster: int = 1,
    shared_bytes: int = 0,
    tile_counter: Tensor | None = None,
) -> Launch:
    import torch

    m, n = inputs.x_MN.shape
    y_MN = torch.empty_like(inputs.x_MN)
    s_MN = None if inputs.r_MN is None else torch.empty_like(inputs.x_MN)
    tensors = (inputs.x_MN, inputs.r_MN, inputs.w_N, inputs.b_N, s_MN, y_MN)
    pointers = tuple(0 if t is None else t.data_ptr() for t in tensors)
    arguments = (*pointers, ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(inputs.eps))
    if tile_counter is not None:
        arguments = (*arguments, tile_counter.data_ptr())
    outputs = y_MN if s_MN is None else (s_MN, y_MN)

    def launch() -> Tensor | tuple[Tensor, ...]:
        assert tile_counter is None or tile_counter.numel() == 2  # the launch keeps the tensor alive
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=cluster, shared_bytes=shared_bytes)
        return outputs

    return launch
