"""Triton kernels of `uniform_fill`: each number follows from a seed and an index (Philox), so no state is read."""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.uniform_fill.formats import bits_of

BYTES_PER_THREAD, WARPS = 16, 4
BYTES_PER_THREAD_PHILOX = 64


# Seeds differ from call to call: specialised on their values, the kernel would be recompiled each time.
@triton.jit(do_not_specialize=["seed"])
def rand_kernel(out_ptr, n, seed, BITS: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    y = tl.rand(seed, offsets)
    if BITS < 24:
        # Cut, not rounded: the largest numbers would become 1.
        y = tl.floor(y * (1 << BITS)) * (1.0 / (1 << BITS))
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=offsets < n)


@triton.jit
def _store(out_ptr, offsets, n, bits, BITS: tl.constexpr):
    y = bits.to(tl.int32).to(tl.float32) * (1.0 / (1 << BITS))
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=offsets < n)


@triton.jit(do_not_specialize=["seed"])
def philox_kernel(out_ptr, n, seed, BITS: tl.constexpr, PART: tl.constexpr, HALVES: tl.constexpr):
    lanes = tl.arange(0, PART)
    calls = tl.program_id(0).to(tl.int64) * PART + lanes
    first = tl.program_id(0).to(tl.int64) * ((8 if HALVES else 4) * PART) + lanes
    # Four numbers a call, one for each part of the block; of 16-bit elements one for two parts, its upper and lower half.
    numbers = tl.randint4x(seed, calls)
    for i in tl.static_range(4):
        random = numbers[i].to(tl.uint32, bitcast=True)
        if HALVES:
            _store(out_ptr, first + 2 * i * PART, n, random >> (32 - BITS), BITS)
            _store(out_ptr, first + (2 * i + 1) * PART, n, (random & 0xFFFF) >> (16 - BITS), BITS)
        else:
            _store(out_ptr, first + i * PART, n, random >> (32 - BITS), BITS)


def bind_rand(like_1: torch.Tensor, n: int) -> Launch:
    """A call of Philox for each of n elements of the format and device of `like_1`.

    Each call of the launch uses a new seed; a captured call keeps the seed of its capture.
    """
    out_N = torch.empty(n, dtype=like_1.dtype, device=like_1.device)
    block = 32 * WARPS * BYTES_PER_THREAD // out_N.element_size()
    grid, seeds, bits = (triton.cdiv(n, block),), itertools.count(2), bits_of(out_N)

    def launch() -> torch.Tensor:
        rand_kernel[grid](out_N, n, next(seeds), BITS=bits, BLOCK=block, num_warps=WARPS)
        return out_N

    return launch


def bind_philox(like_1: torch.Tensor, n: int) -> Launch:
    """A call of Philox for four elements, or for eight of 16 bits; the rest as `bind_rand`."""
    out_N = torch.empty(n, dtype=like_1.dtype, device=like_1.device)
    block, halves = 32 * WARPS * BYTES_PER_THREAD_PHILOX // out_N.element_size(), out_N.element_size() == 2
    grid, seeds, bits = (triton.cdiv(n, block),), itertools.count(2), bits_of(out_N)
    part = block // (8 if halves else 4)

    def launch() -> torch.Tensor:
        philox_kernel[grid](out_N, n, next(seeds), BITS=bits, PART=part, HALVES=halves, num_warps=WARPS)
        return out_N

    return launch
