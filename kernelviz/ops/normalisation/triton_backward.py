"""Triton kernels of the backward passes of `rmsnorm`, `layernorm` and `add_rmsnorm`.

One source for the three: `mean_ptr` and the pointers of db are None except in layernorm; `ds_ptr`, the gradient of the stored
sum, is None except in add_rmsnorm. The forward pass saves the mean and the scale 1 / √(…) of each row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch, Staged
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

LONGEST_ROW_BYTES = 32 * 1024
"""The longest row (padded to a power of two) whose x, dy, weight and sum of dw one program keeps in registers."""
CHUNK = 4096
"""Elements of longer rows, by programs of 16 warps."""
COLUMNS = 512
"""Of a program of `columns_kernel` with 4 warps, so that a warp reads lines of 256 bytes in half precision."""
ROW_SPLITS = 64
"""Programs that share the rows of the same columns in `columns_kernel`."""


@triton.jit
def statistics_kernel(x_ptr, r_ptr, s_ptr, mean_ptr, scale_ptr, n, eps, CHUNK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.arange(0, CHUNK)
    squares = tl.zeros((CHUNK,), tl.float32)
    total = tl.zeros((CHUNK,), tl.float32)
    for i in range(0, tl.cdiv(n, CHUNK)):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
        if r_ptr is not None:
            s = (x + tl.load(r_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)).to(s_ptr.dtype.element_ty)
            tl.store(s_ptr + row * n + at, s, mask=at < n)
            x = s.to(tl.float32)
        total += x
        squares += x * x
    if mean_ptr is not None:
        mean = tl.sum(total, axis=0) / n
        tl.store(mean_ptr + row, mean)
        squares = tl.zeros((CHUNK,), tl.float32)
        for i in range(0, tl.cdiv(n, CHUNK)):
            at = i * CHUNK + columns
            x = tl.load(x_ptr + row * n + at, mask=at < n, other=0.0).to(tl.float32)
            away = tl.where(at < n, x - mean, 0.0)
            squares += away * away
    tl.store(scale_ptr + row, tl.rsqrt(tl.sum(squares, axis=0) / n + eps))


@triton.jit
def _dx(hat, g, scale, n, axis: tl.constexpr, CENTRED: tl.constexpr):
    c = tl.sum(g * hat, axis=axis, keep_dims=True) / n
    inner = g - hat * c
    if CENTRED:
        inner -= tl.sum(g, axis=axis, keep_dims=True) / n
    return inner * scale


@triton.jit
def backward_kernel(
    x_ptr,
    w_ptr,
    dy_ptr,
    ds_ptr,
    mean_ptr,
    scale_ptr,
    dx_ptr,
    dw_parts_ptr,
    db_parts_ptr,
    m,
    n,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    STAGES: tl.constexpr,
):
    columns = tl.arange(0, BLOCK)[None, :]
    inside = columns < n
    w = tl.load(w_ptr + columns, mask=inside, other=0.0)
    # Sums of this program's rows. sum_kernel adds up those of all programs, without atomics and in a fixed order.
    dw = tl.zeros((ROWS, BLOCK), tl.float32)
    db = tl.zeros((ROWS, BLOCK), tl.float32)
    length = tl.full((), n, tl.int64)
    for group in tl.range(tl.program_id(0), tl.cdiv(m, ROWS), tl.num_programs(0), num_stages=STAGES):
        rows = group * ROWS + tl.arange(0, ROWS)[:, None]
        here = rows * length + columns
        mask = inside & (rows < m)
        x = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + here, mask=mask, other=0.0).to(tl.float32)
        scale = tl.load(scale_ptr + rows, mask=rows < m, other=0.0)
        if mean_ptr is not None:
            # 0 where the mask is false, because the 0 loaded there is not an element.
            x = tl.where(mask, x - tl.load(mean_ptr + rows, mask=rows < m, other=0.0), 0.0)
        hat = x * scale
        dx = _dx(hat, dy * w.to(tl.float32), scale, n, 1, mean_ptr is not None)
        if ds_ptr is not None:
            dx += tl.load(ds_ptr + here, mask=mask, other=0.0).to(tl.float32)
        tl.store(dx_ptr + here, dx.to(dx_ptr.dtype.element_ty), mask=mask)
        dw += dy * hat
        if mean_ptr is not None:
            db += dy
    here = tl.program_id(0) * length + tl.arange(0, BLOCK)
    tl.store(dw_parts_ptr + here, tl.sum(dw, axis=0), mask=tl.arange(0, BLOCK) < n)
    if mean_ptr is not None:
        tl.store(db_parts_ptr + here, tl.sum(db, axis=0), mask=tl.arange(0, BLOCK) < n)


@triton.jit
def long_rows_kernel(x_ptr, w_ptr, dy_ptr, ds_ptr, mean_ptr, scale_ptr, dx_ptr, n, CHUNK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * n
    columns = tl.arange(0, CHUNK)
    scale = tl.load(scale_ptr + tl.program_id(0))
    mean = 0.0
    if mean_ptr is not None:
        mean = tl.load(mean_ptr + tl.program_id(0))
    products = tl.zeros((CHUNK,), tl.float32)
    total = tl.zeros((CHUNK,), tl.float32)
    chunks = tl.cdiv(n, CHUNK)
    for i in tl.range(0, chunks, num_stages=3):
        at = i * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        dy = tl.load(dy_ptr + start + at, mask=at < n, other=0.0, eviction_policy="evict_last").to(tl.float32)
        g = dy * tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        products += g * (x - mean)
        total += g
    c = tl.sum(products, axis=0) * scale / n
    level = 0.0
    if mean_ptr is not None:
        level = tl.sum(total, axis=0) / n
    # Backwards, because the chunks read last are the most likely to be in L2.
    for i in range(0, chunks):
        at = (chunks - 1 - i) * CHUNK + columns
        x = tl.load(x_ptr + start + at, mask=at < n, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + start + at, mask=at < n, other=0.0).to(tl.float32)
        g = dy * tl.load(w_ptr + at, mask=at < n, other=0.0).to(tl.float32)
        dx = (g - level - (x - mean) * scale * c) * scale
        if ds_ptr is not None:
            dx += tl.load(ds_ptr + start + at, mask=at < n, other=0.0).to(tl.float32)
        tl.store(dx_ptr + start + at, dx.to(dx_ptr.dtype.element_ty), mask=at < n)


@triton.jit
def columns_kernel(
    x_ptr, dy_ptr, mean_ptr, scale_ptr, dw_parts_ptr, db_parts_ptr, m, n, COLUMNS: tl.constexpr, ROWS: tl.constexpr
):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    dw = tl.zeros((COLUMNS,), tl.float32)
    db = tl.zeros((COLUMNS,), tl.float32)
    length = tl.full((), n, tl.int64)
    for first in tl.range(tl.program_id(1) * ROWS, m, tl.num_programs(1) * ROWS):
        rows = first + tl.arange(0, ROWS)[:, None]
        mask = (rows < m) & (columns < n)[None, :]
        here = rows * length + columns[None, :]
        x = tl.load(x_ptr + here, mask=mask, other=0.0).to(tl.float32)
        dy = tl.load(dy_ptr + here, mask=mask, other=0.0).to(tl.float32)
        if mean_ptr is not None:
            x -= tl.load(mean_ptr + rows, mask=rows < m, other=0.0)
            db += tl.sum(dy, axis=0)
        dw += tl.sum(dy * x * tl.load(scale_ptr + rows, mask=rows < m, other=0.0), axis=0)
    here = tl.program_id(1) * length + columns
    tl.store(dw_parts_ptr + here, dw, mask=columns < n)
    if mean_ptr is not None:
        tl.store(db_parts_ptr + here, db, mask=columns < n)


@triton.jit
def sum_kernel(dw_parts_ptr, db_parts_ptr, dw_ptr, db_ptr, parts, n, PARTS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    dw = tl.zeros((PARTS, COLUMNS), tl.float32)
    db = tl.zeros((PARTS, COLUMNS), tl.float32)
    for first in tl.range(0, parts, PARTS):
        part = first + tl.arange(0, PARTS)[:, None]
        mask = (part < parts) & (columns < n)
        dw += tl.load(dw_parts_ptr + part * n + columns, mask=mask, other=0.0)
        if db_ptr is not None:
            db += tl.load(db_parts_ptr + part * n + columns, mask=mask, other=0.0)
    at = tl.program_id(0) * COLUMNS + tl.arange(0, COLUMNS)
    tl.store(dw_ptr + at, tl.sum(dw, axis=0).to(dw_ptr.dtype.element_ty), mask=at < n)
    if db_ptr is not None:
        tl.store(db_ptr + at, tl.sum(db, axis=0).to(db_ptr.dtype.element_ty), mask=at < n)


@dataclass(frozen=True, slots=True)
class BackwardInputs:
    """The inputs of the backward pass: `b_N` of layernorm only, `r_MN` and the gradient `ds_MN` of add_rmsnorm only."""

    x_MN: torch.Tensor
    w_N: torch.Tensor
    dy_MN: torch.Tensor
    b_N: torch.Tensor | None = None
    r_MN: torch.Tensor | None = None
    ds_MN: torch.Tensor | None = None

    def check(self) -> None:
        """Raises BadField naming the first tensor that is not contiguous."""
        named = {"x_MN": self.x_MN, "r_MN": self.r_MN, "w_N": self.w_N, "b_N": self.b_N}
        named |= {"ds_MN": self.ds_MN, "dy_MN": self.dy_MN}
        require_contiguous(**{name: t for name, t in named.items() if t is not None})


@dataclass(frozen=True, slots=True)
class Saved:
    """What the forward pass saves: the rows that were normalised, and each row's mean (layernorm only) and scale."""

    row_MN: torch.Tensor
    mean_M: torch.Tensor | None
    scale_M: torch.Tensor


def saved_by_forward(inputs: BackwardInputs) -> Saved:
    """Uninitialised tensors for what the forward pass saves."""
    x_MN = inputs.x_MN
    scale_M = torch.empty(x_MN.shape[0], dtype=torch.float32, device=x_MN.device)
    mean_M = torch.empty_like(scale_M) if inputs.b_N is not None else None
    return Saved(x_MN if inputs.r_MN is None else torch.empty_like(x_MN), mean_M, scale_M)


def run_forward(inputs: BackwardInputs, saved: Saved, eps: float) -> None:
    """Fill `saved` for the inputs as they are now; not timed."""
    m, n = inputs.x_MN.shape
    chunk = min(CHUNK, triton.next_power_of_2(n))
    s_MN = None if inputs.r_MN is None else saved.row_MN
    statistics_kernel[(m,)](
        inputs.x_MN, inputs.r_MN, s_MN, saved.mean_M, saved.scale_M, n, eps, CHUNK=chunk, num_warps=8
    )


@dataclass(frozen=True, slots=True)
class Outputs:
    """The gradients, and the partial sums of dw and db that `sum_kernel` adds up."""

    dx_MN: torch.Tensor
    dw_N: torch.Tensor
    db_N: torch.Tensor | None
    dw_parts: torch.Tensor
    db_parts: torch.Tensor | None

    @staticmethod
    def of(inputs: BackwardInputs, parts: int) -> Outputs:
        x_MN, w_N, b_N = inputs.x_MN, inputs.w_N, inputs.b_N
        dw_parts = torch.empty((parts, x_MN.shape[1]), dtype=torch.float32, device=x_MN.device)
        return Outputs(
            torch.empty_like(x_MN),
            torch.empty_like(w_N),
            None if b_N is None else torch.empty_like(b_N),
            dw_parts,
            None if b_N is None else torch.empty_like(dw_parts),
        )

    def sum_parts(self) -> tuple[torch.Tensor, ...]:
        parts, n = self.dw_parts.shape
        sum_kernel[(triton.cdiv(n, 32),)](
            self.dw_parts, self.db_parts, self.dw_N, self.db_N, parts, n, PARTS=64, COLUMNS=32, num_warps=8
        )
        outputs = (self.dx_MN, self.dw_N, self.db_N)
        return tuple(t for t in outputs if t is not None)


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows that a program processes at once, its warps, the stages of its pipeline, programs an SM."""

    rows: int
    warps: int
    stages: int
    programs: int


def grid_for(row_bytes: int, itemsize_bytes: int) -> Grid:
    """16 elements a thread, 32 where that would be more than 16 warps; the registers hold about 512 such threads an SM.

    >>> grid_for(256, 2), grid_for(8192, 2), grid_for(32768, 2)
    (Grid(rows=16, warps=4, stages=3, programs=4), Grid(rows=1, warps=8, stages=3, programs=2), \
Grid(rows=1, warps=16, stages=2, programs=1))
    """
    elements = row_bytes // itemsize_bytes
    rows = max(1, min(16, 2048 // elements))
    warps = max(1, min(16, rows * elements // 512))
    return Grid(rows, warps, 2 if row_bytes > 16 * 1024 else 3, max(1, 16 // warps))


def bind(inputs: BackwardInputs, *, eps: float) -> Staged:
    """Persistent programs with dw in registers for rows of up to 32 KiB, two kernels for longer ones.

    Raises BadField for tensors that are not contiguous.
    """
    inputs.check()
    saved = saved_by_forward(inputs)
    block = triton.next_power_of_2(inputs.x_MN.shape[1])
    row_bytes = block * inputs.x_MN.element_size()
    call = _persistent(inputs, saved, block) if row_bytes <= LONGEST_ROW_BYTES else _long(inputs, saved)
    return Staged(lambda: run_forward(inputs, saved, eps), call)


def _persistent(inputs: BackwardInputs, saved: Saved, block: int) -> Launch:
    m, n = inputs.x_MN.shape
    itemsize = inputs.x_MN.element_size()
    grid = grid_for(block * itemsize, itemsize)
    programs = min(triton.cdiv(m, grid.rows), multiprocessors(inputs.x_MN.device) * grid.programs)
    out = Outputs.of(inputs, programs)
    pointers = (saved.row_MN, inputs.w_N, inputs.dy_MN, inputs.ds_MN, saved.mean_M, saved.scale_M)

    def call() -> tuple[torch.Tensor, ...]:
        backward_kernel[(programs,)](
            *pointers,
            out.dx_MN,
            out.dw_parts,
            out.db_parts,
            m,
            n,
            ROWS=grid.rows,
            BLOCK=block,
            STAGES=grid.stages,
            num_warps=grid.warps,
        )
        return out.sum_parts()

    return call


def _long(inputs: BackwardInputs, saved: Saved) -> Launch:
    m, n = inputs.x_MN.shape
    splits = min(ROW_SPLITS, m)
    out = Outputs.of(inputs, splits)
    pointers = (saved.row_MN, inputs.w_N, inputs.dy_MN, inputs.ds_MN, saved.mean_M, saved.scale_M)
    over_columns = (triton.cdiv(n, COLUMNS), splits)

    def call() -> tuple[torch.Tensor, ...]:
        long_rows_kernel[(m,)](*pointers, out.dx_MN, n, CHUNK=CHUNK, num_warps=16)
        columns_kernel[over_columns](
            saved.row_MN,
            inputs.dy_MN,
            saved.mean_M,
            saved.scale_M,
            out.dw_parts,
            out.db_parts,
            m,
            n,
            COLUMNS=COLUMNS,
            ROWS=4,
            num_warps=4,
        )
        return out.sum_parts()

    return call
