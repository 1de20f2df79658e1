"""Triton kernels of the backward pass of attention: a pass over tiles of keys for dk and dv, another over queries for dq.

Each pass computes scores and weights again from the logarithms of the forward pass. Each gradient is summed by one program, in a
fixed order, so the results are the same each time. Where a program for each tile of keys would leave SMs idle, several programs
have a part of its queries each (`backward_parts`), and another kernel adds what they found, also in a fixed order.

With w the weights, ∂w = do vᵀ and Δ = Σ do o over the dimension: ∂s = w (∂w - Δ), dq = ∂s k / √D, dk = ∂sᵀ q / √D, dv = wᵀ do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import torch
import triton
import triton.language as tl

from kernelviz.ops.attention.tile_schedule import rows_of_program
from kernelviz.ops.attention.triton import LOG2_E, SIZES, _tile_of_program, bind_flash
from kernelviz.ops.attention.triton_backward_parts import (
    bind_key_programs,
    heads_of_part,
    part_of_program,
    positions_of_part,
    store_gradients,
)
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Staged
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits


@triton.jit(do_not_specialize=("rows", *SIZES))
def delta_kernel(o_ptr, do_ptr, delta_ptr, rows, length, heads, D: tl.constexpr, ROWS: tl.constexpr):
    """Δ (B, Hq, S) of rows of o and do, which are (B, S, Hq, D)."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    offsets = row[:, None] * D + tl.arange(0, D)[None, :]
    o = tl.load(o_ptr + offsets, mask=(row < rows)[:, None], other=0.0).to(tl.float32)
    do = tl.load(do_ptr + offsets, mask=(row < rows)[:, None], other=0.0).to(tl.float32)
    position = row // heads
    to = (position // length * heads + row % heads) * length + position % length
    tl.store(delta_ptr + to, tl.sum(o * do, 1), mask=row < rows)


@triton.jit
def _add_queries(dk, dv, k, v, q_start, do_start, log_sums_start, delta_start, within, first, end, keys, length, stride,
                 scale, QUERIES: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """What the queries `first` to `end` add to dk (without 1 / √D) and dv; MASKED if some come before some of the keys."""
    for row in range(first, end, QUERIES):
        rows = row + tl.arange(0, QUERIES)
        there = rows < length
        q = tl.load(q_start + within, mask=there[:, None], other=0.0)
        scores = tl.dot(k, q.T)
        # A query behind the end gets weights of 2 ** -inf = 0.
        log_sums = tl.load(log_sums_start + rows, mask=there, other=float("inf"))
        exponents = scores * scale - log_sums[None, :]
        do = tl.load(do_start + within, mask=there[:, None], other=0.0)
        dw = tl.dot(v, do.T)
        weights = tl.exp2(exponents)
        if MASKED:
            weights = tl.where(keys[:, None] <= rows[None, :], weights, 0.0)
        dv = tl.dot(weights.to(do.dtype), do, dv)
        delta = tl.load(delta_start + rows, mask=there, other=0.0)
        ds = weights * (dw - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
        q_start += QUERIES * stride
        do_start += QUERIES * stride
    return dk, dv, q_start, do_start


@triton.jit(do_not_specialize=SIZES)
def keys_kernel(q_ptr, k_ptr, v_ptr, do_ptr, log_sums_ptr, delta_ptr, dk_ptr, dv_ptr, table_ptr, length, heads, group,
                scale, factor, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
                CAUSAL: tl.constexpr, PARTS: tl.constexpr):  # fmt: skip
    """dk and dv of a tile of keys of a key head, from all queries of its heads or a part of them. `factor` is 1 / √D."""
    key_heads = heads // group
    tiles = tl.cdiv(length, KEYS)
    tile_of_all, first_step, end_step = part_of_program(table_ptr, PARTS)
    of_all = tile_of_all // tiles
    key = tile_of_all % tiles * KEYS  # if causal, the first keys have most queries
    key_head = of_all % key_heads
    batch = (of_all // key_heads).to(tl.int64)
    keys = key + tl.arange(0, KEYS)
    columns = tl.arange(0, D)
    offsets = ((batch * length + keys[:, None]) * key_heads + key_head) * D + columns[None, :]
    k = tl.load(k_ptr + offsets, mask=(keys < length)[:, None], other=0.0)
    v = tl.load(v_ptr + offsets, mask=(keys < length)[:, None], other=0.0)
    dk = tl.zeros((KEYS, D), tl.float32)
    dv = tl.zeros((KEYS, D), tl.float32)
    stride = heads * D
    within = tl.arange(0, QUERIES)[:, None] * stride + columns[None, :]
    first_row = key // QUERIES * QUERIES if CAUSAL else 0
    steps = tl.cdiv(length - first_row, QUERIES)
    first_head, end_head = heads_of_part(first_step, end_step, steps, key_head, group, PARTS)
    for head in range(first_head, end_head):
        first, end = positions_of_part(
            first_step, end_step, head - key_head * group, first_row, steps, length, QUERIES, PARTS
        )
        start = ((batch * length + first) * heads + head) * D
        q_start = q_ptr + start
        do_start = do_ptr + start
        sums = (batch * heads + head) * length
        unmasked = first
        if CAUSAL:
            unmasked = tl.minimum(tl.cdiv(key + KEYS - 1, QUERIES) * QUERIES, tl.cdiv(end, QUERIES) * QUERIES)
            dk, dv, q_start, do_start = _add_queries(
                dk, dv, k, v, q_start, do_start, log_sums_ptr + sums, delta_ptr + sums, within, first,
                unmasked, keys, length, stride, scale, QUERIES, True,
            )  # fmt: skip
            if PARTS:
                unmasked = tl.maximum(first, unmasked)
        dk, dv, q_start, do_start = _add_queries(
            dk, dv, k, v, q_start, do_start, log_sums_ptr + sums, delta_ptr + sums, within, unmasked, end,
            keys, length, stride, scale, QUERIES, False,
        )  # fmt: skip
    store_gradients(dk * factor, dv, dk_ptr, dv_ptr, offsets, keys < length, KEYS, D, PARTS)


@triton.jit
def _add_keys(dq, q, do, log_sums, delta, k_start, v_start, within, first, end, rows, length, stride, scale,
              KEYS: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """What the keys `first` to `end` add to dq (without 1 / √D); MASKED if some of them are behind the last one, or a query."""
    for key in range(first, end, KEYS):
        keys = key + tl.arange(0, KEYS)
        there = keys < length
        k = tl.load(k_start + within, mask=there[:, None], other=0.0)
        exponents = tl.dot(q, k.T) * scale - log_sums[:, None]
        v = tl.load(v_start + within, mask=there[:, None], other=0.0)
        dw = tl.dot(do, v.T)
        weights = tl.exp2(exponents)
        if MASKED:
            seen = there[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            weights = tl.where(seen, weights, 0.0)
        ds = weights * (dw - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
        k_start += KEYS * stride
        v_start += KEYS * stride
    return dq, k_start, v_start


@triton.jit(do_not_specialize=SIZES)
def queries_kernel(q_ptr, k_ptr, v_ptr, do_ptr, log_sums_ptr, delta_ptr, dq_ptr, length, heads, group, scale, factor,
                   D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
                   CAUSAL: tl.constexpr):  # fmt: skip
    """dq of a tile of queries of a head, from all keys. `factor` is 1 / √D."""
    tile, head, key_head, batch = _tile_of_program(tl.cdiv(length, QUERIES), heads, group, CAUSAL)
    stride = heads // group * D
    row = tile * QUERIES
    rows = row + tl.arange(0, QUERIES)
    columns = tl.arange(0, D)
    there = rows < length
    offsets = ((batch * length + rows[:, None]) * heads + head) * D + columns[None, :]
    q = tl.load(q_ptr + offsets, mask=there[:, None], other=0.0)
    do = tl.load(do_ptr + offsets, mask=there[:, None], other=0.0)
    sums = (batch * heads + head) * length
    log_sums = tl.load(log_sums_ptr + sums + rows, mask=there, other=float("inf"))
    delta = tl.load(delta_ptr + sums + rows, mask=there, other=0.0)
    k_start = batch * length * stride + key_head * D
    within = tl.arange(0, KEYS)[:, None] * stride + columns[None, :]
    dq = tl.zeros((QUERIES, D), tl.float32)
    end = tl.minimum(length, row + QUERIES) if CAUSAL else length
    unmasked = (tl.minimum(length, row + 1) if CAUSAL else length) // KEYS * KEYS
    dq, k_start, v_start = _add_keys(
        dq, q, do, log_sums, delta, k_ptr + k_start, v_ptr + k_start, within, 0, unmasked, rows, length, stride, scale,
        KEYS, False, CAUSAL,
    )  # fmt: skip
    dq, k_start, v_start = _add_keys(
        dq, q, do, log_sums, delta, k_start, v_start, within, unmasked, end, rows, length, stride, scale,
        KEYS, True, CAUSAL,
    )  # fmt: skip
    tl.store(dq_ptr + offsets, (dq * factor).to(dq_ptr.dtype.element_ty), mask=there[:, None])


@dataclass(frozen=True, slots=True)
class Part:
    """What a program of a pass has: tiles of queries and keys, warps, and stages of what it loops over."""

    queries: int
    keys: int
    warps: int
    stages: int


@dataclass(frozen=True, slots=True)
class Passes:
    """The pass over tiles of keys for dk and dv, and that over queries for dq."""

    keys: Part
    queries: Part

    def for_rows(self, dimension: int, rows: int, heads: int, device: torch.device) -> Passes:
        """With half of the queries in the pass over queries where SMs would be idle; `heads` of all batches."""
        part = self.queries
        queries, warps = rows_of_program(
            part.queries, part.warps, dimension, rows=rows, heads=heads, multiprocessors=limits(device)[0]
        )
        return replace(self, queries=replace(part, queries=queries, warps=warps))


PASSES = {
    64: (Passes(Part(64, 64, 4, 2), Part(128, 128, 8, 2)), Passes(Part(32, 64, 4, 2), Part(64, 32, 4, 2))),
    128: (Passes(Part(64, 128, 8, 2), Part(128, 128, 8, 2)), Passes(Part(32, 64, 4, 2), Part(64, 32, 4, 2))),
    256: (Passes(Part(32, 64, 8, 2), Part(128, 32, 8, 2)), Passes(Part(16, 32, 4, 1), Part(32, 16, 4, 1))),
}
"""By head dimension, for GPUs with the shared memory of an H100, and for all others from sm_80 on (99 KiB)."""


def bind_two_passes(
    q_BSHD: torch.Tensor,
    k_BSHD: torch.Tensor,
    v_BSHD: torch.Tensor,
    do_BSHD: torch.Tensor,
    *,
    causal: bool,
    passes: Passes | None = None,
    longest: int | None = None,
) -> Staged:
    """dq, dk and dv of contiguous tensors of 16-bit floats, by `delta_kernel`, `keys_kernel` and `queries_kernel`.

    `longest`: most tiles of queries of a program of the pass over keys; None for those of `backward_parts.choose_longest`.
    `forward()` is `flash_kernel`. Raises BadField as `bind_flash`.
    """
    require_contiguous(do_BSHD=do_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    require_head_dimension(dimension)
    group = group_of(heads, k_BSHD.shape[2])
    shared_bytes = limits(q_BSHD.device, MOST_SHARED_BYTES)[1]
    if passes is None:
        passes = PASSES[dimension][shared_bytes < MOST_SHARED_BYTES].for_rows(
            dimension, length, batches * heads, q_BSHD.device
        )
    log_sums_BHS = torch.empty((batches, heads, length), device=q_BSHD.device)
    delta_BHS = torch.empty_like(log_sums_BHS)
    o_BSHD = torch.empty_like(q_BSHD)
    forward = bind_flash(q_BSHD, k_BSHD, v_BSHD, causal=causal, o_BSHD=o_BSHD, log_sums_BHS=log_sums_BHS)
    dq_BSHD, dk_BSHD, dv_BSHD = (torch.empty_like(t) for t in (q_BSHD, k_BSHD, v_BSHD))
    rows = batches * length * heads
    scale, factor = LOG2_E / math.sqrt(dimension), dimension**-0.5
    by_keys, by_queries = passes.keys, passes.queries
    programs = bind_key_programs(
        dk_BSHD, dv_BSHD, group, queries=by_keys.queries, keys=by_keys.keys, warps=by_keys.warps, causal=causal,
        longest=longest,
    )  # fmt: skip
    query_grid = (triton.cdiv(length, by_queries.queries) * batches * heads,)

    def call() -> Tensors:
        delta_kernel[(triton.cdiv(rows, 32),)](
            o_BSHD, do_BSHD, delta_BHS, rows, length, heads, D=dimension, ROWS=32, num_warps=4
        )
        keys_kernel[(programs.count,)](
            q_BSHD, k_BSHD, v_BSHD, do_BSHD, log_sums_BHS, delta_BHS, *programs.to, programs.table, length, heads, group,
            scale, factor, D=dimension, QUERIES=by_keys.queries, KEYS=by_keys.keys, CAUSAL=causal, PARTS=programs.parts,
            num_warps=by_keys.warps, num_stages=by_keys.stages,
        )  # fmt: skip
        programs.add()
        queries_kernel[query_grid](
            q_BSHD, k_BSHD, v_BSHD, do_BSHD, log_sums_BHS, delta_BHS, dq_BSHD, length, heads, group,
            scale, factor, D=dimension, QUERIES=by_queries.queries, KEYS=by_queries.keys, CAUSAL=causal,
            num_warps=by_queries.warps, num_stages=by_queries.stages,
        )  # fmt: skip
        return dq_BSHD, dk_BSHD, dv_BSHD

    return Staged(forward=forward, call=call)
