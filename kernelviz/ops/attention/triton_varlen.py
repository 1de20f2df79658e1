"""Triton kernel of causal attention of sequences of different lengths that follow each other without padding.

Tensors are contiguous, (positions of all sequences T, heads, dimension D); `ends_B` has the position after each sequence (int32).
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl

from kernelviz.ops.attention.triton import LOG2_E, TILES, Tile, _add_keys
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.attention_heads import group_of, require_head_dimension
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.kernels.limits import MOST_SHARED_BYTES, limits

SIZES = ("sequences", "heads", "group")
"""Arguments that kernels are not compiled for: D alone decides how addresses are aligned."""
SCANNED = 128
"""Sequences that a program compares with its number at once."""


@triton.jit
def _tile_in_sequence(number, ends_ptr, sequences, QUERIES: tl.constexpr, SCANNED: tl.constexpr):
    """First row of a tile in its sequence, and first position and length of that sequence; a negative row for no tile.

    Sequence i, which begins at position p, has the numbers from p // QUERIES + i on. That is at least one number for each of its
    tiles, so a program needs no sum over the tiles of the sequences before its own.
    """
    begun = 0
    for first in range(0, sequences, SCANNED):
        numbers = first + tl.arange(0, SCANNED)
        there = numbers < sequences
        starts = tl.load(ends_ptr + numbers - 1, mask=there & (numbers > 0), other=0)
        begun += tl.sum((there & (starts // QUERIES + numbers <= number)).to(tl.int32), 0)
    sequence = begun - 1
    start = tl.load(ends_ptr + sequence - 1, mask=sequence > 0, other=0)
    length = tl.load(ends_ptr + sequence) - start
    # The tiles with most keys first.
    tile = tl.cdiv(length, QUERIES) - 1 - (number - start // QUERIES - sequence)
    return tile * QUERIES, start.to(tl.int64), length


@triton.jit(do_not_specialize=SIZES)
def varlen_flash_kernel(q_ptr, k_ptr, v_ptr, o_ptr, ends_ptr, sequences, heads, group, scale, D: tl.constexpr,
                        QUERIES: tl.constexpr, KEYS: tl.constexpr, SCANNED: tl.constexpr):  # fmt: skip
    """A tile of queries of a head and sequence, if there is one of this number. `scale` is log2(e) / √D."""
    head = tl.program_id(0) % heads
    row, start, length = _tile_in_sequence(tl.program_id(0) // heads, ends_ptr, sequences, QUERIES, SCANNED)
    if row >= 0:
        stride = heads // group * D
        rows = row + tl.arange(0, QUERIES)
        columns = tl.arange(0, D)
        q_within = tl.arange(0, QUERIES)[:, None] * (heads * D) + columns[None, :]
        q_start = ((start + row) * heads + head) * D
        q = tl.load(q_ptr + q_start + q_within, mask=(rows < length)[:, None], other=0.0)
        k_start = start * stride + head // group * D
        within = tl.arange(0, KEYS)[:, None] * stride + columns[None, :]
        o = tl.zeros((QUERIES, D), tl.float32)
        maximum = tl.full((QUERIES,), float("-inf"), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        # Each row sees the first key, so its maximum is finite after the first tile.
        unmasked = tl.minimum(length, row + 1) // KEYS * KEYS
        o, maximum, total, k_start, v_start = _add_keys(
            o, maximum, total, q, k_ptr + k_start, v_ptr + k_start, within, 0, unmasked, rows, length, stride, scale,
            KEYS, False, True,
        )  # fmt: skip
        o, maximum, total, k_start, v_start = _add_keys(
            o, maximum, total, q, k_start, v_start, within, unmasked, tl.minimum(length, row + QUERIES), rows, length,
            stride, scale, KEYS, True, True,
        )  # fmt: skip
        o = o / total[:, None]
        # Rows from `length` on belong to the next sequence, which other programs compute.
        tl.store(o_ptr + q_start + q_within, o.to(o_ptr.dtype.element_ty), mask=(rows < length)[:, None])


def most_tiles(positions: int, sequences: int, queries: int) -> int:
    """The numbers of tiles of a head, whatever the lengths are; some of them stand for no tile.

    >>> most_tiles(1000, 3, 128)  # of one sequence of 1,000 positions and two of none: 8 tiles
    10
    """
    return positions // queries + sequences


def bind_varlen_flash(
    q_THD: torch.Tensor, k_THD: torch.Tensor, v_THD: torch.Tensor, ends_B: torch.Tensor, *, tile: Tile | None = None
) -> Launch:
    """Launch of `varlen_flash_kernel` over contiguous tensors of 16-bit floats, and int32 `ends_B`, which only the GPU reads.

    Raises BadField for tensors that are not contiguous, and for other head dimensions than 64, 128 and 256.
    """
    require_contiguous(q_THD=q_THD, k_THD=k_THD, v_THD=v_THD, ends_B=ends_B)
    positions, heads, dimension = q_THD.shape
    sequences = ends_B.shape[0]
    require_head_dimension(dimension)
    group = group_of(heads, k_THD.shape[1])
    tile = tile or TILES[dimension][limits(q_THD.device, MOST_SHARED_BYTES)[1] < MOST_SHARED_BYTES]
    o_THD = torch.empty_like(q_THD)
    grid = (most_tiles(positions, sequences, tile.queries) * heads,)

    def launch() -> torch.Tensor:
        varlen_flash_kernel[grid](
            q_THD, k_THD, v_THD, o_THD, ends_B, sequences, heads, group, LOG2_E / math.sqrt(dimension), D=dimension,
            QUERIES=tile.queries, KEYS=tile.keys, SCANNED=SCANNED, num_warps=tile.warps, num_stages=tile.stages,
        )  # fmt: skip
        return o_THD

    return launch
