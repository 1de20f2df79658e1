"""Triton kernels of the backward pass of attention in two passes as `triton_backward`, which explains them, that load by TMA."""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernelviz.ops.attention.triton import LOG2_E, SIZES, _tile_of_program
from kernelviz.ops.attention.triton_backward import Part, Passes, delta_kernel
from kernelviz.ops.attention.triton_backward_parts import (
    bind_key_programs,
    heads_of_part,
    part_of_program,
    positions_of_part,
    store_gradients,
)
from kernelviz.ops.attention.triton_descriptors import bind_descriptors
from kernelviz.ops.catalog.tensors import Tensors
from kernelviz.ops.catalog.variant import Staged
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits
from kernelviz.ops.kernels.triton_scratch import ScratchContext


@triton.jit
def _add_queries(dk, dv, k, v, q_map, do_map, log_sums_start, delta_start, batch, column, first, end, keys, length,
                 scale, D: tl.constexpr, QUERIES: tl.constexpr, MASKED: tl.constexpr):  # fmt: skip
    """What the queries `first` to `end` add to dk (without 1 / √D) and dv; MASKED if some come before some of the keys."""
    for row in range(first, end, QUERIES):
        rows = row + tl.arange(0, QUERIES)
        there = rows < length
        q = q_map.load([batch, row, column]).reshape(QUERIES, D)
        scores = tl.dot(k, q.T)
        # A query behind the end gets weights of 2 ** -inf = 0.
        log_sums = tl.load(log_sums_start + rows, mask=there, other=float("inf"))
        exponents = scores * scale - log_sums[None, :]
        do = do_map.load([batch, row, column]).reshape(QUERIES, D)
        dw = tl.dot(v, do.T)
        weights = tl.exp2(exponents)
        if MASKED:
            weights = tl.where(keys[:, None] <= rows[None, :], weights, 0.0)
        dv = tl.dot(weights.to(do.dtype), do, dv)
        delta = tl.load(delta_start + rows, mask=there, other=0.0)
        ds = weights * (dw - delta[None, :])
        dk = tl.dot(ds.to(q.dtype), q, dk)
    return dk, dv


@triton.jit(do_not_specialize=SIZES)
def keys_kernel(q_ptr, k_ptr, v_ptr, do_ptr, log_sums_ptr, delta_ptr, dk_ptr, dv_ptr, table_ptr, batches, length,
                heads, group, scale, factor, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
                CAUSAL: tl.constexpr, PARTS: tl.constexpr):  # fmt: skip
    """dk and dv of a tile of keys of a key head, from all queries of its heads or a part of them. `factor` is 1 / √D."""
    key_heads = heads // group
    row_elements = heads * D
    key_elements = key_heads * D
    sequence = length.to(tl.int64)
    q_map = tl.make_tensor_descriptor(
        q_ptr, [batches, length, row_elements], [sequence * row_elements, row_elements, 1], [1, QUERIES, D]
    )
    do_map = tl.make_tensor_descriptor(
        do_ptr, [batches, length, row_elements], [sequence * row_elements, row_elements, 1], [1, QUERIES, D]
    )
    k_map = tl.make_tensor_descriptor(
        k_ptr, [batches, length, key_elements], [sequence * key_elements, key_elements, 1], [1, KEYS, D]
    )
    v_map = tl.make_tensor_descriptor(
        v_ptr, [batches, length, key_elements], [sequence * key_elements, key_elements, 1], [1, KEYS, D]
    )
    tiles = tl.cdiv(length, KEYS)
    tile_of_all, first_step, end_step = part_of_program(table_ptr, PARTS)
    of_all = tile_of_all // tiles
    key = tile_of_all % tiles * KEYS  # if causal, the first keys have most queries
    key_head = of_all % key_heads
    batch = of_all // key_heads
    keys = key + tl.arange(0, KEYS)
    k = k_map.load([batch, key, key_head * D]).reshape(KEYS, D)
    v = v_map.load([batch, key, key_head * D]).reshape(KEYS, D)
    dk = tl.zeros((KEYS, D), tl.float32)
    dv = tl.zeros((KEYS, D), tl.float32)
    first_row = key // QUERIES * QUERIES if CAUSAL else 0
    steps = tl.cdiv(length - first_row, QUERIES)
    first_head, end_head = heads_of_part(first_step, end_step, steps, key_head, group, PARTS)
    for head in range(first_head, end_head):
        first, end = positions_of_part(
            first_step, end_step, head - key_head * group, first_row, steps, length, QUERIES, PARTS
        )
        sums = (batch.to(tl.int64) * heads + head) * length
        unmasked = first
        if CAUSAL:
            unmasked = tl.minimum(tl.cdiv(key + KEYS - 1, QUERIES), tl.cdiv(end, QUERIES)) * QUERIES
            dk, dv = _add_queries(
                dk, dv, k, v, q_map, do_map, log_sums_ptr + sums, delta_ptr + sums, batch, head * D, first,
                unmasked, keys, length, scale, D, QUERIES, True,
            )  # fmt: skip
            if PARTS:
                unmasked = tl.maximum(first, unmasked)
        dk, dv = _add_queries(
            dk, dv, k, v, q_map, do_map, log_sums_ptr + sums, delta_ptr + sums, batch, head * D, unmasked,
            end, keys, length, scale, D, QUERIES, False,
        )  # fmt: skip
    columns = tl.arange(0, D)
    offsets = ((batch.to(tl.int64) * length + keys[:, None]) * key_heads + key_head) * D + columns[None, :]
    store_gradients(dk * factor, dv, dk_ptr, dv_ptr, offsets, keys < length, KEYS, D, PARTS)


@triton.jit
def _add_keys(dq, q, do, log_sums, delta, k_map, v_map, batch, column, first, end, rows, length, scale, D: tl.constexpr,
              KEYS: tl.constexpr, MASKED: tl.constexpr, CAUSAL: tl.constexpr):  # fmt: skip
    """What the keys `first` to `end` add to dq (without 1 / √D); MASKED if some of them are behind the last one, or a query."""
    for key in range(first, end, KEYS):
        k = k_map.load([batch, key, column]).reshape(KEYS, D)
        exponents = tl.dot(q, k.T) * scale - log_sums[:, None]
        v = v_map.load([batch, key, column]).reshape(KEYS, D)
        dw = tl.dot(do, v.T)
        weights = tl.exp2(exponents)
        if MASKED:
            keys = key + tl.arange(0, KEYS)
            seen = (keys < length)[None, :]
            if CAUSAL:
                seen = seen & (keys[None, :] <= rows[:, None])
            weights = tl.where(seen, weights, 0.0)
        ds = weights * (dw - delta[:, None])
        dq = tl.dot(ds.to(k.dtype), k, dq)
    return dq


@triton.jit(do_not_specialize=SIZES)
def queries_kernel(q_ptr, k_ptr, v_ptr, do_ptr, log_sums_ptr, delta_ptr, dq_ptr, batches, length, heads, group, scale,
                   factor, D: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,
                   CAUSAL: tl.constexpr):  # fmt: skip
    """dq of a tile of queries of a head, from all keys. `factor` is 1 / √D."""
    tile, head, key_head, batch = _tile_of_program(tl.cdiv(length, QUERIES), heads, group, CAUSAL)
    row_elements = heads * D
    key_elements = heads // group * D
    sequence = length.to(tl.int64)
    q_map = tl.make_tensor_descriptor(
        q_ptr, [batches, length, row_elements], [sequence * row_elements, row_elements, 1], [1, QUERIES, D]
    )
    do_map = tl.make_tensor_descriptor(
        do_ptr, [batches, length, row_elements], [sequence * row_elements, row_elements, 1], [1, QUERIES, D]
    )
    k_map = tl.make_tensor_descriptor(
        k_ptr, [batches, length, key_elements], [sequence * key_elements, key_elements, 1], [1, KEYS, D]
    )
    v_map = tl.make_tensor_descriptor(
        v_ptr, [batches, length, key_elements], [sequence * key_elements, key_elements, 1], [1, KEYS, D]
    )
    row = tile * QUERIES
    rows = row + tl.arange(0, QUERIES)
    there = rows < length
    sums = (batch * heads + head) * length
    of_batch = batch.to(tl.int32)
    q = q_map.load([of_batch, row, head * D]).reshape(QUERIES, D)
    do = do_map.load([of_batch, row, head * D]).reshape(QUERIES, D)
    log_sums = tl.load(log_sums_ptr + sums + rows, mask=there, other=float("inf"))
    delta = tl.load(delta_ptr + sums + rows, mask=there, other=0.0)
    dq = tl.zeros((QUERIES, D), tl.float32)
    end = tl.minimum(length, row + QUERIES) if CAUSAL else length
    unmasked = (tl.minimum(length, row + 1) if CAUSAL else length) // KEYS * KEYS
    column = key_head * D
    dq = _add_keys(
        dq, q, do, log_sums, delta, k_map, v_map, of_batch, column, 0, unmasked, rows, length, scale, D, KEYS, False,
        CAUSAL,
    )  # fmt: skip
    dq = _add_keys(
        dq, q, do, log_sums, delta, k_map, v_map, of_batch, column, unmasked, end, rows, length, scale, D, KEYS, True,
        CAUSAL,
    )  # fmt: skip
    offsets = ((batch * length + rows[:, None]) * heads + head) * D + tl.arange(0, D)[None, :]
    tl.store(dq_ptr + offsets, (dq * factor).to(dq_ptr.dtype.element_ty), mask=there[:, None])


PASSES = {
    64: (Passes(Part(64, 64, 4, 2), Part(128, 64, 4, 3)), Passes(Part(64, 64, 4, 2), Part(64, 64, 4, 2))),
    128: (Passes(Part(64, 64, 4, 2), Part(128, 64, 8, 3)), Passes(Part(32, 64, 4, 2), Part(64, 32, 4, 2))),
    256: (Passes(Part(64, 64, 8, 2), Part(128, 32, 8, 2)), Passes(Part(16, 32, 4, 1), Part(32, 16, 4, 1))),
}
"""By head dimension, for GPUs with the shared memory of an H100, and for all others (99 KiB)."""


def passes_for(dimension: int, device: torch.device) -> Passes:
    """Those of `PASSES` for that GPU; without a GPU, for an H100.

    Blackwell multiplies from copies in shared memory, so that the larger tiles of 256 would take 263,168 bytes there.
    """
    small = limits(device, MOST_SHARED_BYTES)[1] < MOST_SHARED_BYTES
    hopper = device.type != "cuda" or torch.cuda.get_device_capability(device)[0] == 9
    return PASSES[dimension][small or (dimension == 256 and not hopper)]


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
    `forward()` is `descriptors_kernel`. Raises BadField as `bind_descriptors`.
    """
    require_contiguous(do_BSHD=do_BSHD)
    batches, length, heads, dimension = q_BSHD.shape
    require_head_dimension(dimension)
    group = group_of(heads, k_BSHD.shape[2])
    if passes is None:
        passes = passes_for(dimension, q_BSHD.device).for_rows(dimension, length, batches * heads, q_BSHD.device)
    by_keys, by_queries = passes.keys, passes.queries
    log_sums_BHS = torch.empty((batches, heads, length), device=q_BSHD.device)
    delta_BHS = torch.empty_like(log_sums_BHS)
    o_BSHD = torch.empty_like(q_BSHD)
    forward = bind_descriptors(q_BSHD, k_BSHD, v_BSHD, causal=causal, o_BSHD=o_BSHD, log_sums_BHS=log_sums_BHS)
    dq_BSHD, dk_BSHD, dv_BSHD = (torch.empty_like(t) for t in (q_BSHD, k_BSHD, v_BSHD))
    rows = batches * length * heads
    numbers = (batches, length, heads, group, LOG2_E / math.sqrt(dimension), dimension**-0.5)
    programs = bind_key_programs(
        dk_BSHD, dv_BSHD, group, queries=by_keys.queries, keys=by_keys.keys, warps=by_keys.warps, causal=causal,
        longest=longest,
    )  # fmt: skip
    of_keys = keys_kernel[(programs.count,)]
    of_queries = queries_kernel[(triton.cdiv(length, by_queries.queries) * batches * heads,)]
    key_scratch, query_scratch = ScratchContext(q_BSHD.device), ScratchContext(q_BSHD.device)

    def call() -> Tensors:
        delta_kernel[(triton.cdiv(rows, 32),)](
            o_BSHD, do_BSHD, delta_BHS, rows, length, heads, D=dimension, ROWS=32, num_warps=4
        )
        key_scratch.launch(
            of_keys, q_BSHD, k_BSHD, v_BSHD, do_BSHD, log_sums_BHS, delta_BHS, *programs.to, programs.table, *numbers,
            D=dimension, QUERIES=by_keys.queries, KEYS=by_keys.keys, CAUSAL=causal, PARTS=programs.parts,
            num_warps=by_keys.warps, num_stages=by_keys.stages,
        )  # fmt: skip
        programs.add()
        query_scratch.launch(
            of_queries, q_BSHD, k_BSHD, v_BSHD, do_BSHD, log_sums_BHS, delta_BHS, dq_BSHD, *numbers, D=dimension,
            QUERIES=by_queries.queries, KEYS=by_queries.keys, CAUSAL=causal, num_warps=by_queries.warps,
            num_stages=by_queries.stages,
        )  # fmt: skip
        return dq_BSHD, dk_BSHD, dv_BSHD

    return Staged(forward=forward, call=call)
