"""Triton kernel of `rope`: one program per token, out of place or in place, forwards or backwards."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous


@triton.jit
def _rotate(
    x_ptr, out_ptr, row, cos, sin, HEADS: tl.constexpr, P: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_P: tl.constexpr
):
    # 64-bit offsets: t * heads * 2p passes 2^31 on a GPU with 140 GB.
    start = row * (HEADS * 2 * P)
    pairs = tl.arange(0, BLOCK_P)[None, :]
    for first in tl.static_range(0, HEADS, BLOCK_H):
        heads = first + tl.arange(0, BLOCK_H)[:, None]
        at = start + heads * (2 * P) + pairs
        inside = (heads < HEADS) & (pairs < P)
        x = tl.load(x_ptr + at, mask=inside).to(tl.float32)
        z = tl.load(x_ptr + at + P, mask=inside).to(tl.float32)
        _store(out_ptr, at, inside, x, z, cos, sin, P)


@triton.jit
def _store(out_ptr, at, inside, x, z, cos, sin, P: tl.constexpr):
    tl.store(out_ptr + at, (x * cos - z * sin).to(out_ptr.dtype.element_ty), mask=inside)
    tl.store(out_ptr + at + P, (z * cos + x * sin).to(out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _load(x_ptr, row, HEADS: tl.constexpr, P: tl.constexpr, BLOCK_H: tl.constexpr, BLOCK_P: tl.constexpr):
    heads = tl.arange(0, BLOCK_H)[:, None]
    pairs = tl.arange(0, BLOCK_P)[None, :]
    at = row * (HEADS * 2 * P) + heads * (2 * P) + pairs
    inside = (heads < HEADS) & (pairs < P)
    return (
        at,
        inside,
        tl.load(x_ptr + at, mask=inside).to(tl.float32),
        tl.load(x_ptr + at + P, mask=inside).to(tl.float32),
    )


@triton.jit
def rope_kernel(
    q_ptr,
    k_ptr,
    cos_ptr,
    sin_ptr,
    q_out_ptr,
    k_out_ptr,
    HQ: tl.constexpr,
    HK: tl.constexpr,
    P: tl.constexpr,
    BLOCK_Q: tl.constexpr,
    BLOCK_K: tl.constexpr,
    BLOCK_P: tl.constexpr,
    BACK: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    pairs = tl.arange(0, BLOCK_P)[None, :]
    cos = tl.load(cos_ptr + row * P + pairs, mask=pairs < P).to(tl.float32)
    sin = tl.load(sin_ptr + row * P + pairs, mask=pairs < P).to(tl.float32)
    if BACK:
        sin = -sin
    if HQ <= BLOCK_Q and HK <= BLOCK_K:
        # All loads before the first store: no load moves before a store to memory that may be the same.
        q_at, q_inside, q_x, q_z = _load(q_ptr, row, HQ, P, BLOCK_Q, BLOCK_P)
        k_at, k_inside, k_x, k_z = _load(k_ptr, row, HK, P, BLOCK_K, BLOCK_P)
        _store(q_out_ptr, q_at, q_inside, q_x, q_z, cos, sin, P)
        _store(k_out_ptr, k_at, k_inside, k_x, k_z, cos, sin, P)
    else:
        _rotate(q_ptr, q_out_ptr, row, cos, sin, HQ, P, BLOCK_Q, BLOCK_P)
        _rotate(k_ptr, k_out_ptr, row, cos, sin, HK, P, BLOCK_K, BLOCK_P)


WARPS = 4
PAIRS_A_TILE = 2048
"""Pairs of a program in flight at once: 16 a thread, which are 64 bytes in bf16."""


def heads_a_tile(heads: int, p: int) -> int:
    """Heads that a program rotates at once, a power of two.

    >>> [heads_a_tile(heads, 64) for heads in (1, 8, 28, 64)]
    [1, 8, 32, 32]
    """
    return int(min(triton.next_power_of_2(heads), max(1, PAIRS_A_TILE // triton.next_power_of_2(p))))


def bind_token(
    q_TH2P: torch.Tensor,
    k_TH2P: torch.Tensor,
    cos_TP: torch.Tensor,
    sin_TP: torch.Tensor,
    *,
    back: bool = False,
    in_place: bool = False,
    names: tuple[str, str] = ("q_TH2P", "k_TH2P"),
) -> Launch:
    """One program a token; with `in_place` the results are the inputs. Raises BadField for tensors that are not contiguous."""
    require_contiguous(**{names[0]: q_TH2P, names[1]: k_TH2P}, cos_TP=cos_TP, sin_TP=sin_TP)
    outputs = (q_TH2P, k_TH2P) if in_place else (torch.empty_like(q_TH2P), torch.empty_like(k_TH2P))
    t, hq, _, p = q_TH2P.shape
    hk = k_TH2P.shape[1]
    tiles = heads_a_tile(hq, p), heads_a_tile(hk, p), triton.next_power_of_2(p)

    def launch() -> tuple[torch.Tensor, torch.Tensor]:
        rope_kernel[(t,)](q_TH2P, k_TH2P, cos_TP, sin_TP, *outputs, hq, hk, p, *tiles, BACK=back, num_warps=WARPS)
        return outputs

    return launch
