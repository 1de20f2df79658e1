"""CUDA C++ kernels of the backward passes of `rmsnorm`, `layernorm` and `add_rmsnorm`, bound to tensors."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from math import gcd
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.op import Launch, Staged
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.normalisation.cuda import MOST_CLUSTER, VEC16_BYTES, Given, Shape, power_of_2

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda_backward.cu"
SM_BYTES = 228 * 1024
"""Shared memory of an SM (sm_90, sm_100), of which each block costs 1 KiB more than it asks for."""
MOST_STAGES = 6
LONG_LANES, TILE_LANES, TILE_COLUMNS = 512, 256, 1024
"""Threads of the kernels of rows of any length; columns of a block of `long_row_columns`."""
ROW_SPLITS = 16
"""Blocks that share the rows of the same columns there."""


@dataclass(frozen=True, slots=True)
class Columns:
    """How clusters that stay take rows: a shape, and rows on their way (x and dy; of ds one less)."""

    shape: Shape
    stages: int
    shared_bytes: int


def columns_shape(words: int, tensors: int) -> Shape | None:
    """How clusters that stay take rows of that many 16-byte words, `tensors` of which are read; None for those too long.

    At most 512 threads an SM, or 768 with two words each: dw, db and the weight take 20 registers a word. With three tensors a
    block of 512 threads takes two words each, since four leave room for two stages only, unless that makes clusters of 16,
    of which an H200 holds few.

    >>> columns_shape(1024, 2), columns_shape(4096, 2)
    (Shape(lanes=512, words=2, cluster=1, rows=1, blocks=1), Shape(lanes=512, words=4, cluster=2, rows=1, blocks=1))
    >>> columns_shape(4096, 3), columns_shape(16384, 3)
    (Shape(lanes=512, words=2, cluster=4, rows=1, blocks=1), Shape(lanes=512, words=4, cluster=8, rows=1, blocks=1))
    >>> columns_shape(16, 2), columns_shape(32769, 2)
    (Shape(lanes=16, words=1, cluster=1, rows=16, blocks=4), None)
    """
    if words <= 128:
        lanes = min(32, power_of_2(words))
        each = -(-words // lanes)
        return Shape(lanes, each, rows=256 // lanes, blocks=4 if each == 1 else 2)
    if words <= 512:
        lanes = 32 * -(-words // 64)
        return Shape(lanes, 2, blocks=768 // lanes)
    cluster = power_of_2(-(-words // (2048 if tensors == 2 else 1024)))
    if cluster > MOST_CLUSTER // 2:
        cluster = power_of_2(-(-words // 2048))
    part = -(-words // cluster)
    each = 2 if part <= 1024 else 4
    return Shape(32 * -(-part // (32 * each)), each, cluster) if cluster <= MOST_CLUSTER else None


def columns_of(words: int, tensors: int, *, centred: bool) -> Columns | None:
    """As many stages as shared memory holds, at least two; None for rows that are too long.

    >>> columns_of(4096, 2, centred=True)
    Columns(shape=Shape(lanes=512, words=4, cluster=2, rows=1, blocks=1), stages=3, shared_bytes=196608)
    >>> columns_of(4096, 3, centred=False), columns_of(16384, 3, centred=False).stages
    (Columns(shape=Shape(lanes=512, words=2, cluster=4, rows=1, blocks=1), stages=5, shared_bytes=229376), 2)
    """
    shape = columns_shape(words, tensors)
    if shape is None:
        return None
    stage = shape.lanes * shape.rows * shape.words * VEC16_BYTES
    boxes = 16 + 2 * max(1, shape.lanes // 32) * shape.cluster * (8 if centred else 4)
    fit = (SM_BYTES // shape.blocks - 1024 - boxes) // stage
    sums = tensors - 2  # of ds, one stage less
    stages = min(MOST_STAGES, (fit + sums) // tensors)
    return Columns(shape, stages, stage * (tensors * stages - sums))


def clusters_for(m: int, resident: int, period: int) -> int:
    """How many clusters share m rows: a multiple of `period`, so that all rows of one start at the same place between two words,
    or as many as there are rows.

    >>> clusters_for(5, 66, 8), clusters_for(2048, 66, 1), clusters_for(2048, 66, 8), clusters_for(2048, 6, 8)
    (5, 66, 64, 8)
    """
    return m if m <= resident else min(m, max(period, resident // period * period))


@dataclass(frozen=True, slots=True)
class Gradients:
    """What the backward pass reads; the gradient of the stored sum of add_rmsnorm only."""

    given: Given
    dy_MN: Tensor
    ds_MN: Tensor | None = None

    def check(self) -> None:
        """Raises BadField naming a tensor that is not contiguous or does not start on 16 bytes."""
        self.given.check()
        for name, tensor in {"ds_MN": self.ds_MN, "dy_MN": self.dy_MN}.items():
            if tensor is None:
                continue
            require_contiguous(**{name: tensor})
            if tensor.data_ptr() % VEC16_BYTES:
                raise BadField(f"input {name}", hex(tensor.data_ptr()), "this kernel needs one that starts on 16 bytes")


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass leaves: the row that was normalised, and each row's mean (layernorm's) and scale."""

    row_MN: Tensor
    mean_M: Tensor | None
    scale_M: Tensor


@dataclass(frozen=True, slots=True)
class Outputs:
    """Gradients, and the partial sums of dw, then of db, that `sum_parts` adds up."""

    dx_MN: Tensor
    dw_N: Tensor
    db_N: Tensor | None
    parts: Tensor

    @staticmethod
    def of(given: Given, parts: int) -> Outputs:
        import torch

        x_MN, b_N = given.x_MN, given.b_N
        pitch = 4 * -(-x_MN.shape[1] // 4)
        sums = torch.empty((1 if b_N is None else 2, parts, pitch), dtype=torch.float32, device=x_MN.device)
        db_N = None if b_N is None else torch.empty_like(b_N)
        return Outputs(torch.empty_like(x_MN), torch.empty_like(given.w_N), db_N, sums)

    @property
    def pitch(self) -> int:
        return int(self.parts.shape[2])

    @property
    def gradients(self) -> tuple[Tensor, ...]:
        return (self.dx_MN, self.dw_N) if self.db_N is None else (self.dx_MN, self.dw_N, self.db_N)


def bind(gradients: Gradients) -> Staged:
    """Clusters that stay on their columns, rows of up to 512 KiB; longer ones are read twice.

    Errors: BadField for tensors that are not contiguous or aligned.
    """
    gradients.check()
    given = gradients.given
    tensors = 2 if gradients.ds_MN is None else 3
    columns = columns_of(given.words, tensors, centred=given.b_N is not None)
    # The kernels of long rows ignore the shape that they are compiled with.
    shape = Shape(LONG_LANES, 1) if columns is None else columns.shape
    defines = given.defines() | shape.defines(aligned=given.aligned)
    defines["ROW_STAGES"] = str(2 if columns is None else columns.stages)
    saved = _saved(given)
    if columns is None:
        return Staged(_forward(given, saved, defines), _long(gradients, saved, defines))
    return Staged(_forward(given, saved, defines), _staying(gradients, saved, columns, defines))


def _saved(given: Given) -> Saved:
    import torch

    x_MN = given.x_MN
    scale_M = torch.empty(x_MN.shape[0], dtype=torch.float32, device=x_MN.device)
    mean_M = None if given.b_N is None else torch.empty_like(scale_M)
    return Saved(x_MN if given.r_MN is None else torch.empty_like(x_MN), mean_M, scale_M)


def _enqueuing(
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

    def launch(kept: object = tensors) -> None:
        nvrtc.launch(kernel, blocks, threads, *arguments)

    return launch


def _pointers(tensors: tuple[Tensor | None, ...]) -> tuple[int, ...]:
    return tuple(0 if t is None else t.data_ptr() for t in tensors)


def _forward(given: Given, saved: Saved, defines: dict[str, str]) -> Callable[[], None]:
    m, n = given.x_MN.shape
    s_MN = None if given.r_MN is None else saved.row_MN
    tensors = (given.x_MN, given.r_MN, s_MN, saved.mean_M, saved.scale_M)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_float(given.eps))
    return _enqueuing("row_statistics", defines, m, LONG_LANES, tensors, sizes)


def _staying(gradients: Gradients, saved: Saved, columns: Columns, defines: dict[str, str]) -> Launch:
    given, shape, shared = gradients.given, columns.shape, columns.shared_bytes
    m, n = given.x_MN.shape
    threads = shape.lanes * shape.rows
    kernel = nvrtc.kernel(SOURCE, "backward_rows", defines, cluster=shape.cluster, shared_bytes=shared)
    resident = nvrtc.resident(kernel, threads, cluster=shape.cluster, shared_bytes=shared) // shape.cluster
    if shape.rows > 1:  # a multiple of any period
        clusters = min(resident, -(-m // shape.rows))
    else:
        clusters = clusters_for(m, resident, given.width // gcd(n, given.width))
    out = Outputs.of(given, clusters)
    inputs = (saved.row_MN, given.w_N, gradients.dy_MN, gradients.ds_MN, saved.mean_M, saved.scale_M)
    tensors = (*inputs, out.dx_MN, out.parts)
    arguments = (*_pointers(tensors), ctypes.c_longlong(m), ctypes.c_int(n), ctypes.c_int(out.pitch))
    blocks, sum_parts = clusters * shape.cluster, _summing(out, defines)

    def call(kept: object = tensors) -> tuple[Tensor, ...]:
        nvrtc.launch(kernel, blocks, threads, *arguments, cluster=shape.cluster, shared_bytes=shared)
        sum_parts()
        return out.gradients

    return call


def _long(gradients: Gradients, saved: Saved, defines: dict[str, str]) -> Launch:
    import torch

    given = gradients.given
    m, n = given.x_MN.shape
    splits = min(ROW_SPLITS, m)
    out = Outputs.of(given, splits)
    row_sums = torch.empty((m, 2), dtype=torch.float32, device=given.x_MN.device)
    read = (saved.row_MN, given.w_N, gradients.dy_MN)
    statistics = (saved.mean_M, saved.scale_M, row_sums)
    sizes = (ctypes.c_longlong(m), ctypes.c_int(n))
    sum_rows = _enqueuing("long_row_sums", defines, m, LONG_LANES, (*read, *statistics), sizes)
    tensors = (*read, gradients.ds_MN, *statistics, out.dx_MN, out.parts)
    grid = (-(-n // TILE_COLUMNS), splits)
    pitched = (*sizes, ctypes.c_int(out.pitch))
    walk_columns = _enqueuing("long_row_columns", defines, grid, TILE_LANES, tensors, pitched)
    sum_parts = _summing(out, defines)

    def call() -> tuple[Tensor, ...]:
        sum_rows()
        walk_columns()
        sum_parts()
        return out.gradients

    return call


def _summing(out: Outputs, defines: dict[str, str]) -> Callable[[], None]:
    kinds, count, pitch = out.parts.shape
    n = out.dw_N.shape[0]
    sizes = (ctypes.c_int(count), ctypes.c_int(n), ctypes.c_int(pitch))
    return _enqueuing("sum_parts", defines, (-(-n // 32), kinds), 256, (out.parts, out.dw_N, out.db_N), sizes)
