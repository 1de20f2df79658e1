"""CUDA C++ kernels of the backward passes of `rmsnorm`, `layernorm` and `add_rmsnorm`, bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.normalisation.cuda import MOST_CLUSTER, VEC16_BYTES, NormInputs, RowTile, power_of_2

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_backward.cu"
ONE_BLOCK_SOURCE = Path(__file__).parent / "cuda_one_block_backward.cu"
ONE_BLOCK_ELEMENTS = 8192
"""Of the largest problem that one block processes in one launch: up to 96 KiB of loads, which an SM needs about 1 us for, where a
second launch takes 1.2 us. Not measured."""
ONE_BLOCK_SHARES = 4096
"""Of that problem: its rows times the threads of a warp that share one. The block has about 60 instructions for each such
thread and row, so that more would take longer than a second launch. Not measured."""
ONE_LOAD_THREADS, ONE_BLOCK_THREADS, MOST_THREADS = 256, 512, 1024
"""Of that block: up to which each element has a thread; at most; and at most where a thread had more than eight elements."""
FEW_BLOCK_ROWS = 4
"""Of that block: as many have one group, so that no sums of columns are exchanged."""
ONE_BLOCK_COLUMN_SUMS = 8192
"""In shared memory of that block: 32 KiB."""
SM_BYTES = 228 * 1024
"""Shared memory of an SM (sm_90, sm_100). Each block takes 1 KiB more than it allocates."""
MOST_STAGES = 6
LONG_LANES, TILE_LANES, TILE_COLUMNS = 512, 256, 1024
"""Threads of the kernels of rows of any length; columns of a block of `long_row_columns`."""
FEW_ROWS, BLOCK_OF_FEW_VECTORS = 264, (33, 128)
"""Rows, about two for each SM of an H200, up to which a block has one row of that many 16-byte vectors, a vector a thread; blocks
of eight warps with a row each leave SMs without work. H200, such blocks: rmsnorm of 120 rows of 528 bf16 takes 6.21 us, 5.56 in
Triton and 4.67 by inductor's kernels; layernorm of 64 rows of 256 fp32 5.37. One row a block was not measured."""
ROW_SPLITS = 16
"""Blocks that share the rows of the same columns there."""


@dataclass(frozen=True, slots=True)
class BackwardTile:
    """The tile of persistent clusters, rows in flight (of x and dy; of ds one less) and their shared memory."""

    tile: RowTile
    stages: int
    shared_bytes: int


def row_tile(vectors: int, tensors: int, *, few: bool = False) -> RowTile | None:
    """The tile of persistent clusters for rows of that many 16-byte vectors of `tensors` tensors; None if they are too long.

    At most 512 threads an SM, or 768 with two vectors each, because dw, db and the weight take 20 registers a vector. With three
    tensors the 512 threads of a block have two vectors each, because four leave room for only two stages, unless two would make
    clusters of 16, of which an H200 holds few. `few`: there are at most FEW_ROWS.

    >>> row_tile(1024, 2), row_tile(4096, 2)
    (RowTile(lanes=512, vectors=2, cluster=1, rows=1, blocks=1), RowTile(lanes=512, vectors=4, cluster=2, rows=1, blocks=1))
    >>> row_tile(4096, 3), row_tile(16384, 3)
    (RowTile(lanes=512, vectors=2, cluster=4, rows=1, blocks=1), RowTile(lanes=512, vectors=4, cluster=8, rows=1, blocks=1))
    >>> row_tile(16, 2), row_tile(32769, 2)
    (RowTile(lanes=16, vectors=1, cluster=1, rows=16, blocks=4), None)
    >>> row_tile(66, 2).rows, row_tile(66, 2, few=True)
    (8, RowTile(lanes=96, vectors=1, cluster=1, rows=1, blocks=8))
    """
    shortest, longest = BLOCK_OF_FEW_VECTORS
    if few and shortest <= vectors <= longest:
        lanes = 32 * -(-vectors // 32)
        return RowTile(lanes, 1, blocks=768 // lanes)
    if vectors <= 128:
        lanes = min(32, power_of_2(vectors))
        each = -(-vectors // lanes)
        return RowTile(lanes, each, rows=256 // lanes, blocks=4 if each == 1 else 2)
    if vectors <= 512:
        lanes = 32 * -(-vectors // 64)
        return RowTile(lanes, 2, blocks=768 // lanes)
    cluster = power_of_2(-(-vectors // (2048 if tensors == 2 else 1024)))
    if cluster > MOST_CLUSTER // 2:
        cluster = power_of_2(-(-vectors // 2048))
    part = -(-vectors // cluster)
    each = 2 if part <= 1024 else 4
    return RowTile(32 * -(-part // (32 * each)), each, cluster) if cluster <= MOST_CLUSTER else None


def backward_tile(vectors: int, tensors: int, *, centred: bool, few: bool = False) -> BackwardTile | None:
    """The tile with as many stages as shared memory holds, at least two; None for rows that are too long.

    >>> backward_tile(4096, 2, centred=True)
    BackwardTile(tile=RowTile(lanes=512, vectors=4, cluster=2, rows=1, blocks=1), stages=3, shared_bytes=196608)
    >>> backward_tile(4096, 3, centred=False), backward_tile(16384, 3, centred=False).stages
    (BackwardTile(tile=RowTile(lanes=512, vectors=2, cluster=4, rows=1, blocks=1), stages=5, shared_bytes=229376), 2)
    """
    tile = row_tile(vectors, tensors, few=few)
    if tile is None:
        return None
    stage = tile.lanes * tile.rows * tile.vectors * VEC16_BYTES
    boxes = 16 + 2 * max(1, tile.lanes // 32) * tile.cluster * (8 if centred else 4)
    fit = (SM_BYTES // tile.blocks - 1024 - boxes) // stage
    sums = tensors - 2  # of ds, one stage less
    one_row = few and tile.vectors == 1 and tile.rows == 1  # of each block, so that nothing is prefetched
    stages = 2 if one_row else min(MOST_STAGES, (fit + sums) // tensors)
    return BackwardTile(tile, stages, stage * (tensors * stages - sums))


def clusters_for(m: int, resident: int, period: int) -> int:
    """How many clusters share m rows: a multiple of `period`, so that all rows of a cluster start at the same offset within a
    vector, or as many as there are rows.

    >>> clusters_for(5, 66, 8), clusters_for(2048, 66, 1), clusters_for(2048, 66, 8), clusters_for(2048, 6, 8)
    (5, 66, 64, 8)
    """
    return m if m <= resident else min(m, max(period, resident // period * period))


@dataclass(frozen=True, slots=True)
class OneBlockTile:
    """Threads that share a row, groups of such threads that share the rows, and adjacent elements of a load."""

    lanes: int
    groups: int
    width: int

    def defines(self, m: int, n: int) -> dict[str, str]:
        """What the kernel is compiled with for m rows of n columns."""
        return {
            "ONE_BLOCK_ROWS": str(m),
            "ONE_BLOCK_COLUMNS": str(n),
            "ONE_BLOCK_LANES": str(self.lanes),
            "ONE_BLOCK_GROUPS": str(self.groups),
            "ONE_BLOCK_WIDTH": str(self.width),
        }

    @property
    def threads(self) -> int:
        """Of the block."""
        return self.lanes * self.groups


def one_block_tile(m: int, n: int, itemsize_bytes: int, *, centred: bool) -> OneBlockTile | None:
    """The tile of the one block that processes m rows of n columns; None if they are too many.

    >>> one_block_tile(1, 11, 2, centred=False), one_block_tile(2, 2048, 2, centred=False)
    (OneBlockTile(lanes=16, groups=2, width=1), OneBlockTile(lanes=256, groups=1, width=8))
    >>> one_block_tile(41, 14, 2, centred=True), one_block_tile(2, 4097, 2, centred=True)
    (OneBlockTile(lanes=8, groups=44, width=2), None)
    >>> one_block_tile(1000, 3, 2, centred=False), one_block_tile(1147, 5, 2, centred=False)
    (OneBlockTile(lanes=4, groups=128, width=1), None)
    """
    if m * n > ONE_BLOCK_ELEMENTS:
        return None
    most_width, width = gcd(n, VEC16_BYTES // itemsize_bytes), 1
    while width < most_width and m * n > ONE_LOAD_THREADS * width:
        width *= 2
    units = n // width
    if m * min(32, power_of_2(units)) > ONE_BLOCK_SHARES:
        return None
    each = max(1 if m <= FEW_BLOCK_ROWS else 2, -(-units // ONE_BLOCK_THREADS))
    lanes = power_of_2(units) if units <= 32 else 32 * -(-units // (32 * each))
    if units > 32 and m <= FEW_BLOCK_ROWS:
        return OneBlockTile(lanes, 1, width)
    most = ONE_BLOCK_THREADS if m * n <= 8 * ONE_BLOCK_THREADS else MOST_THREADS
    groups = max(1, min(m, most // lanes, ONE_BLOCK_COLUMN_SUMS // ((2 if centred else 1) * n)))
    of_warp = max(1, 32 // lanes)
    return OneBlockTile(lanes, of_warp * -(-groups // of_warp), width)


@dataclass(frozen=True, slots=True)
class BackwardInputs:
    """The inputs of the backward pass: those of the op and the gradients of its outputs, `ds_MN` of add_rmsnorm only."""

    inputs: NormInputs
    dy_MN: Tensor
    ds_MN: Tensor | None = None

    def check(self) -> None:
        """Raises BadField naming a tensor that is not contiguous or does not start on 16 bytes."""
        self.inputs.check()
        for name, tensor in {"ds_MN": self.ds_MN, "dy_MN": self.dy_MN}.items():
            if tensor is None:
                continue
            require_contiguous(**{name: tensor})
            if tensor.data_ptr() % VEC16_BYTES:
                raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass saves: the rows that were normalised, and each row's mean (layernorm only) and scale."""

    row_MN: Tensor
    mean_M: Tensor | None
    scale_M: Tensor


@dataclass(frozen=True, slots=True)
class Outputs:
    """The gradients, and the partial sums of dw and then of db that `sum_parts` adds up."""

    dx_MN: Tensor
    dw_N: Tensor
    db_N: Tensor | None
    parts: Tensor

    @staticmethod
    def of(inputs: NormInputs, parts: int, *, columns: int | None = None) -> Outputs:
        """Uninitialised; room for `columns` numbers in a part, or for those of a row."""
        import torch

        x_MN, b_N = inputs.x_MN, inputs.b_N
        pitch = 4 * -(-(columns or x_MN.shape[1]) // 4)
        sums = torch.empty((1 if b_N is None else 2, parts, pitch), dtype=torch.float32, device=x_MN.device)
        db_N = None if b_N is None else torch.empty_like(b_N)
        return Outputs(torch.empty_like(x_MN), torch.empty_like(inputs.w_N), db_N, sums)

    @property
    def pitch(self) -> int:
        return int(self.parts.shape[2])

    @property
    def gradients(self) -> tuple[Tensor, ...]:
        return (self.dx_MN, self.dw_N) if self.db_N is None else (self.dx_MN, self.dw_N, self.db_N)


def bind(backward: BackwardInputs) -> Staged:
    """Persistent clusters with fixed columns for rows of up to 512 KiB, one block for few elements; longer rows are read twice.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    backward.check()
    inputs = backward.inputs
    tensors = 2 if backward.ds_MN is None else 3
    few = inputs.x_MN.shape[0] <= FEW_ROWS
    chosen = backward_tile(inputs.row_vectors, tensors, centred=inputs.b_N is not None, few=few)
    # The kernels for long rows ignore the tile that they are compiled with.
    tile = RowTile(LONG_LANES, 1) if chosen is None else chosen.tile
    defines = inputs.defines() | tile.defines(aligned=inputs.aligned)
    defines["ROW_STAGES"] = str(2 if chosen is None else chosen.stages)
    saved = saved_by_forward(inputs)
    m, n = inputs.x_MN.shape
    one_block = one_block_tile(m, n, inputs.x_MN.element_size(), centred=inputs.b_N is not None)
    if one_block is not None:
        return Staged(forward_pass(inputs, saved), _one_block(backward, saved, one_block))
    if chosen is None:
        return Staged(forward_pass(inputs, saved), _long(backward, saved, defines))
    return Staged(forward_pass(inputs, saved), _persistent(backward, saved, chosen, defines))


def saved_by_forward(inputs: NormInputs) -> Saved:
    """Uninitialised tensors for what the forward pass saves."""
    import torch

    x_MN = inputs.x_MN
    scale_M = torch.empty(x_MN.shape[0], dtype=torch.float32, device=x_MN.device)
    mean_M = None if inputs.b_N is None else torch.empty_like(scale_M)
    return Saved(x_MN if inputs.r_MN is None else torch.empty_like(x_MN), mean_M, scale_M)


def _launch_of(
    name: str,
    defines: dict[str, str],
    blocks: nvrtc.Size,
    threads: int,
    tensors: tuple[Tensor | None, ...],
    sizes: tuple[Any, ...],
) -> Callable[[], None]:
    """The launch of a kernel that needs neither a cluster nor dynamic shared memory."""
    kernel = nvrtc.kernel(SOURCE, name, defines)
    arguments = (*_pointers(tensors), *sizes)

    def launch(alive: object = tensors) -> None:
        nvrtc.launch(kernel, blocks, threads, *arguments)

    return launch


def _pointers(tensors: tuple[Tensor | None, ...]) -> tuple[int, ...]:
    return tuple(0 if t is None else t.data_ptr() for t in tensors)


def forward_pass(inputs: NormInputs, saved: Saved) -> Callable[[], None]:
    """What fills `saved` for the inputs as they are now; not timed."""
    # The kernel ignores the tile that it is compiled with.
    defines = inputs.defines() | RowTile(LONG_LANES, 1).defines(aligned=inputs.aligned) | {"ROW_STAGES": "2"}
    m, n = inputs.x_MN.shape
    s_MN = None if inputs.r_MN is None else saved.row_MN
    tensors = (inputs.x_MN, inputs.r_MN, s_MN, saved.mean_M, saved.scale_M)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(inputs.eps))
    return _launch_of("row_statistics", defines, m, LONG_LANES, tensors, sizes)


def _persistent(backward: BackwardInputs, saved: Saved, chosen: BackwardTile, defines: dict[str, str]) -> Launch:
    inputs, tile, shared = backward.inputs, chosen.tile, chosen.shared_bytes
    m, n = inputs.x_MN.shape
    threads = tile.lanes * tile.rows
    kernel = nvrtc.kernel(SOURCE, "backward_rows", defines, cluster=tile.cluster, shared_bytes=shared)
    resident = nvrtc.resident(kernel, threads, cluster=tile.cluster, shared_bytes=shared) // tile.cluster
    if tile.rows > 1:  # a multiple of any period
        clusters = min(resident, -(-m // tile.rows))
    else:
        clusters = clusters_for(m, resident, inputs.width // gcd(n, inputs.width))
    # Rows that share a block store their sums together, at their columns.
    shift = 0 if tile.rows > 1 else n % inputs.width
    out = Outputs.of(inputs, clusters, columns=shifted_columns(n, inputs.width) if shift else n)
    rows = (saved.row_MN, inputs.w_N, backward.dy_MN, backward.ds_MN, saved.mean_M, saved.scale_M)
    tensors = (*rows, out.dx_MN, out.parts)
    arguments = (*_pointers(tensors), ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(out.pitch))
    blocks, sum_parts = clusters * tile.cluster, _sum_parts(out, defines, shift)

    def call(alive: object = tensors) -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=tile.cluster, shared_bytes=shared)
        sum_parts()
        return out.gradients

    return call


def _one_block(backward: BackwardInputs, saved: Saved, tile: OneBlockTile) -> Launch:
    import torch

    inputs = backward.inputs
    defines = inputs.defines() | tile.defines(*inputs.x_MN.shape)
    kernel = nvrtc.kernel(ONE_BLOCK_SOURCE, "backward_one_block", defines)
    dx_MN, dw_N = torch.empty_like(inputs.x_MN), torch.empty_like(inputs.w_N)
    db_N = None if inputs.b_N is None else torch.empty_like(inputs.b_N)
    rows = (saved.row_MN, inputs.w_N, backward.dy_MN, backward.ds_MN, saved.mean_M, saved.scale_M)
    tensors = (*rows, dx_MN, dw_N, db_N)
    arguments = _pointers(tensors)
    gradients = (dx_MN, dw_N) if db_N is None else (dx_MN, dw_N, db_N)

    def call(alive: object = tensors) -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, 1, tile.threads, *arguments)
        return gradients

    return call


def _long(backward: BackwardInputs, saved: Saved, defines: dict[str, str]) -> Launch:
    import torch

    inputs = backward.inputs
    m, n = inputs.x_MN.shape
    splits = min(ROW_SPLITS, m)
    out = Outputs.of(inputs, splits)
    row_sums = torch.empty((m, 2), dtype=torch.float32, device=inputs.x_MN.device)
    read = (saved.row_MN, inputs.w_N, backward.dy_MN)
    statistics = (saved.mean_M, saved.scale_M, row_sums)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n))
    sum_rows = _launch_of("long_row_sums", defines, m, LONG_LANES, (*read, *statistics), sizes)
    tensors = (*read, backward.ds_MN, *statistics, out.dx_MN, out.parts)
    grid = (-(-n // TILE_COLUMNS), splits)
    pitched = (*sizes, ctypes.c_int(out.pitch))
    reduce_columns = _launch_of("long_row_columns", defines, grid, TILE_LANES, tensors, pitched)
    sum_parts = _sum_parts(out, defines)

    def call() -> tuple[Tensor, ...]:
        sum_rows()
        reduce_columns()
        sum_parts()
        return out.gradients

    return call


def shifted_columns(n: int, width: int) -> int:
    """Numbers of a part of which n columns begin up to `width` - 1 behind its first: all vectors that a row touches, and as many
    as four columns at once reach behind the last.

    >>> shifted_columns(9842, 8), shifted_columns(261, 4)
    (9860, 268)
    """
    return (n + 2 * width - 2) // width * width + 4


def _sum_parts(out: Outputs, defines: dict[str, str], shift: int = 0) -> Callable[[], None]:
    """The launch that adds up parts whose columns begin `shift` numbers further behind than those of the part before."""
    kinds, count, pitch = out.parts.shape
    n = out.dw_N.shape[0]
    sizes = (ctypes.c_int(count), ctypes.c_int(n), ctypes.c_int(pitch), ctypes.c_int(shift))
    return _launch_of("sum_parts", defines, (-(-n // 32), kinds), 256, (out.parts, out.dw_N, out.db_N), sizes)
