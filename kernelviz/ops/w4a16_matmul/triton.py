"""Triton kernels of `w4a16_matmul`: the weights become 16 bits in registers, and are multiplied there or by tensor cores."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.core.errors import BadField
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import limits
from kernelviz.ops.w4a16_matmul import tiles
from kernelviz.ops.w4a16_matmul.layout import GROUP, groups


@triton.jit
def _zero_points(z_ptr, group, features, n, inside):
    """Zero points of a group or several for some features, as whole numbers."""
    packed = tl.load(z_ptr + group * tl.cdiv(n, 2) + features // 2, mask=inside, other=0)
    return (packed >> ((features % 2) * 4).to(tl.uint8)) & 15


@triton.jit
def _weights(packed, scale, zero):
    """The weights of each row of bytes: one subtraction, which is exact, and one product, rounded to the dtype of the scales.

    Whole numbers become floating point by conversions. Logic instructions that put a 4-bit number into the last bits of one would
    not be fewer, because Triton unpacks bytes first: 4.8 for a weight instead of 2.9 and a conversion (SASS, sm_90, Triton 3.6).
    """
    q = tl.interleave(packed & 15, packed >> 4)
    return (q.to(scale.dtype) - zero) * scale


@triton.jit
def dequantise_kernel(w_ptr, s_ptr, z_ptr, out_ptr, n, k, groups, BN: tl.constexpr, WHOLE: tl.constexpr):
    # Neighbouring programs have neighbouring groups, because a row of the output is written in one go.
    group = tl.program_id(0)
    features = tl.program_id(1) * BN + tl.arange(0, BN)
    inside = features < n
    row = tl.full((), 0, tl.int64) + group
    rows = tl.minimum(features, n - 1).to(tl.int64)[:, None]
    packed = tl.load(w_ptr + (rows * groups + group) * 64 + tl.arange(0, 64)[None, :])
    scale = tl.load(s_ptr + row * n + features, mask=inside, other=0.0)
    zero = _zero_points(z_ptr, row, features, n, inside).to(scale.dtype)
    column = group * 128 + tl.arange(0, 128)
    mask = inside[:, None] & (WHOLE | (column < k)[None, :])
    tl.store(out_ptr + rows * k + column[None, :], _weights(packed, scale[:, None], zero[:, None]), mask=mask)


@triton.jit
def fused_kernel(
    x_ptr,
    w_ptr,
    s_ptr,
    z_ptr,
    y_ptr,
    part_ptr,
    m,
    n,
    k,
    groups,
    part_groups,
    BM: tl.constexpr,
    BN: tl.constexpr,
    PARTS: tl.constexpr,
    EVEN_K: tl.constexpr,
    WEIGHTS_FIRST: tl.constexpr,
):
    # Neighbouring programs share the same weights, which are the larger factor of the two.
    tile_m = tl.program_id(0)
    tile_n = tl.program_id(1)
    part = tl.program_id(2)
    rows = tile_m * BM + tl.arange(0, BM)
    features = tile_n * BN + tl.arange(0, BN)
    depth = tl.arange(0, 128)
    pieces = tl.arange(0, 64)
    # Rows after the last one are read again: what is computed of them is not stored.
    x_rows = x_ptr + tl.minimum(rows, m - 1).to(tl.int64)[:, None] * k
    w_rows = w_ptr + tl.minimum(features, n - 1).to(tl.int64)[:, None] * groups * 64
    acc = tl.zeros((BN, BM) if WEIGHTS_FIRST else (BM, BN), tl.float32)
    first = part * part_groups
    for group in range(first, tl.minimum(first + part_groups, groups)):
        column = group * 128 + depth
        x = tl.load(x_rows + column[None, :], mask=EVEN_K | (column < k)[None, :], other=0.0)
        packed = tl.load(w_rows + group * 64 + pieces[None, :])
        row = tl.full((), 0, tl.int64) + group
        scale = tl.load(s_ptr + row * n + features, mask=features < n, other=0.0)
        zero = _zero_points(z_ptr, row, features, n, features < n).to(x.dtype)
        w = _weights(packed, scale[:, None], zero[:, None])
        acc = tl.dot(w, tl.trans(x), acc) if WEIGHTS_FIRST else tl.dot(x, tl.trans(w), acc)
    if WEIGHTS_FIRST:
        acc = tl.trans(acc)
    inside = (rows < m)[:, None] & (features < n)[None, :]
    at = rows.to(tl.int64)[:, None] * n + features[None, :]
    if PARTS == 1:
        tl.store(y_ptr + at, acc.to(y_ptr.dtype.element_ty), mask=inside)
    else:
        tl.store(part_ptr + part.to(tl.int64) * m * n + at, acc, mask=inside)


@triton.jit
def gemv_kernel(
    x_ptr,
    w_ptr,
    s_ptr,
    z_ptr,
    y_ptr,
    part_ptr,
    m,
    n,
    k,
    groups,
    part_groups,
    BN: tl.constexpr,
    BG: tl.constexpr,
    PARTS: tl.constexpr,
    EVEN_K: tl.constexpr,
):
    # One row of x; a program has BN features and BG groups of each at a time.
    row = tl.program_id(1).to(tl.int64)
    part = tl.program_id(2)
    features = tl.program_id(0) * BN + tl.arange(0, BN)
    pieces = tl.arange(0, 64)
    w_rows = w_ptr + tl.minimum(features, n - 1).to(tl.int64)[:, None, None] * groups * 64
    acc = tl.zeros((BN, BG), tl.float32)
    first = part * part_groups
    end = tl.minimum(first + part_groups, groups)
    for begin in range(first, end, BG):
        group = begin + tl.arange(0, BG)
        inside = group < end
        packed = tl.load(
            w_rows + group[None, :, None] * 64 + pieces[None, None, :], mask=inside[None, :, None], other=0
        )
        low_column = group[:, None] * 128 + 2 * pieces[None, :]
        low_inside = EVEN_K | (low_column < k)
        high_inside = EVEN_K | (low_column + 1 < k)
        x_low = tl.load(x_ptr + row * k + low_column, mask=inside[:, None] & low_inside, other=0.0).to(tl.float32)
        x_high = tl.load(x_ptr + row * k + low_column + 1, mask=inside[:, None] & high_inside, other=0.0).to(tl.float32)
        at = (features < n)[:, None] & inside[None, :]
        group64 = group.to(tl.int64)[None, :]
        scale = tl.load(s_ptr + group64 * n + features[:, None], mask=at, other=0.0)
        zero = _zero_points(z_ptr, group64, features[:, None], n, at).to(tl.float32)
        low = (packed & 15).to(tl.float32) - zero[:, :, None]
        high = (packed >> 4).to(tl.float32) - zero[:, :, None]
        products = low * x_low[None, :, :] + high * x_high[None, :, :]
        acc += tl.sum(products, 2) * scale.to(tl.float32)
    y = tl.sum(acc, 1)
    if PARTS == 1:
        tl.store(y_ptr + row * n + features, y.to(y_ptr.dtype.element_ty), mask=features < n)
    else:
        tl.store(part_ptr + (part.to(tl.int64) * m + row) * n + features, y, mask=features < n)


@triton.jit
def sum_parts_kernel(part_ptr, y_ptr, size, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for part in tl.static_range(PARTS):
        total += tl.load(part_ptr + part * size.to(tl.int64) + at, mask=at < size, other=0.0)
    tl.store(y_ptr + at, total.to(y_ptr.dtype.element_ty), mask=at < size)


SUM_BLOCK = 1024
DEQUANTISED_FEATURES = 64
"""Of a program: 4 KB of weights become 16 KB."""


class _Operands:
    """The tensors of a problem, its sizes, and room for the result and the sums of parts."""

    def __init__(
        self, x_MK: torch.Tensor, w_NGB: torch.Tensor, s_GN: torch.Tensor, z_GH: torch.Tensor, parts: int
    ) -> None:
        require_contiguous(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
        (self.m, self.k), self.n, self.groups = x_MK.shape, len(w_NGB), groups(x_MK.shape[1])
        if parts > self.groups:
            raise BadField("parts", parts, f"K has only {self.groups} groups of {GROUP}")
        self.part_groups = -(-self.groups // parts)
        self.parts = -(-self.groups // self.part_groups)
        self.y_MN = torch.empty((self.m, self.n), dtype=x_MK.dtype, device=x_MK.device)
        size = self.parts * self.m * self.n if self.parts > 1 else 1
        self.sums = torch.empty(size, dtype=torch.float32, device=x_MK.device)
        self.tensors = (x_MK, w_NGB, s_GN, z_GH, self.y_MN, self.sums)

    @property
    def sizes(self) -> tuple[int, int, int, int, int]:
        return self.m, self.n, self.k, self.groups, self.part_groups

    def add_parts(self) -> torch.Tensor:
        """The result, after a second kernel has added the parts if there are several."""
        if self.parts > 1:
            grid = (triton.cdiv(self.m * self.n, SUM_BLOCK),)
            sum_parts_kernel[grid](self.sums, self.y_MN, self.m * self.n, PARTS=self.parts, BLOCK=SUM_BLOCK)
        return self.y_MN


def bind_fused(
    x_MK: torch.Tensor, w_NGB: torch.Tensor, s_GN: torch.Tensor, z_GH: torch.Tensor, tile: tiles.FusedTile | None
) -> Launch:
    """Launch of `fused_kernel` over contiguous tensors; None: the tile for the size. Errors: BadField."""
    (m, k), n = x_MK.shape, len(w_NGB)
    chosen = tile or tiles.fused_tile(m, n, k, *limits(x_MK.device))
    operands = _Operands(x_MK, w_NGB, s_GN, z_GH, chosen.parts)
    grid = (triton.cdiv(m, chosen.rows), triton.cdiv(n, chosen.features), operands.parts)

    def launch() -> torch.Tensor:
        fused_kernel[grid](
            *operands.tensors,
            *operands.sizes,
            BM=chosen.rows,
            BN=chosen.features,
            PARTS=operands.parts,
            EVEN_K=k % GROUP == 0,
            WEIGHTS_FIRST=chosen.order == tiles.WEIGHTS_FIRST,
            num_warps=chosen.warps,
            num_stages=chosen.stages,
        )
        return operands.add_parts()

    return launch


def bind_gemv(
    x_MK: torch.Tensor, w_NGB: torch.Tensor, s_GN: torch.Tensor, z_GH: torch.Tensor, tile: tiles.GemvTile | None
) -> Launch:
    """Launch of `gemv_kernel` over contiguous tensors; None: the tile for the size. Errors: BadField for more than 16 rows."""
    require_contiguous(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    (m, k), n = x_MK.shape, len(w_NGB)
    if m > tiles.GEMV_ROWS:
        message = f"every row of x reads all weights again, so this kernel takes at most {tiles.GEMV_ROWS}; choose triton_fused"
        raise BadField("size m", m, message)
    chosen = tile or tiles.gemv_tile(m, n, k, limits(x_MK.device)[0])
    operands = _Operands(x_MK, w_NGB, s_GN, z_GH, chosen.parts)
    grid = (triton.cdiv(n, chosen.features), m, operands.parts)

    def launch() -> torch.Tensor:
        gemv_kernel[grid](
            *operands.tensors,
            *operands.sizes,
            BN=chosen.features,
            BG=chosen.groups,
            PARTS=operands.parts,
            EVEN_K=k % GROUP == 0,
            num_warps=chosen.warps,
            num_stages=chosen.stages,
        )
        return operands.add_parts()

    return launch


def bind_dequantise(x_MK: torch.Tensor, w_NGB: torch.Tensor, s_GN: torch.Tensor, z_GH: torch.Tensor) -> Launch:
    """Launch of `dequantise_kernel` over contiguous tensors, then `torch.mm` with the weights that it wrote. Errors: BadField."""
    require_contiguous(x_MK=x_MK, w_NGB=w_NGB, s_GN=s_GN, z_GH=z_GH)
    (m, k), n = x_MK.shape, len(w_NGB)
    w_NK = torch.empty((n, k), dtype=x_MK.dtype, device=x_MK.device)
    y_MN = torch.empty((m, n), dtype=x_MK.dtype, device=x_MK.device)
    grid = (groups(k), triton.cdiv(n, DEQUANTISED_FEATURES))

    def launch() -> torch.Tensor:
        dequantise_kernel[grid](
            w_NGB, s_GN, z_GH, w_NK, n, k, groups(k), BN=DEQUANTISED_FEATURES, WHOLE=k % GROUP == 0, num_warps=4
        )
        return torch.mm(x_MK, w_NK.t(), out=y_MN)

    return launch
