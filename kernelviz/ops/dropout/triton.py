"""Triton kernels of `dropout`: the mask follows from a seed and each element's index, so none is stored."""

from __future__ import annotations

import itertools

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

BYTES_PER_THREAD, WARPS = 16, 4
BYTES_PER_THREAD_PHILOX = 64


# Seeds differ from call to call: specialised on their values, the kernel would be recompiled each time.
@triton.jit(do_not_specialize=["seed"])
def rand_kernel(x_ptr, out_ptr, n, p, scale, seed, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.where(tl.rand(seed, offsets) < p, 0.0, x * scale)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def _drop(x_ptr, out_ptr, offsets, n, random, threshold, scale):
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    y = tl.where(random < threshold, 0.0, x * scale)
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit(do_not_specialize=["seed"])
def philox_kernel(x_ptr, out_ptr, n, threshold, scale, seed, PART: tl.constexpr, HALVES: tl.constexpr):
    lanes = tl.arange(0, PART)
    calls = tl.program_id(0).to(tl.int64) * PART + lanes
    first = tl.program_id(0).to(tl.int64) * ((8 if HALVES else 4) * PART) + lanes
    # Four numbers a call, one for each part of the block; of 16-bit elements one for two parts, its upper and lower half. Read
    # as signed numbers they are below the threshold, moved down by 2^31 like them, with the same probability.
    numbers = tl.randint4x(seed, calls)
    for i in tl.static_range(4):
        random = numbers[i].to(tl.int32, bitcast=True)
        if HALVES:
            _drop(x_ptr, out_ptr, first + 2 * i * PART, n, random, threshold, scale)
            _drop(x_ptr, out_ptr, first + (2 * i + 1) * PART, n, random << 16, threshold, scale)
        else:
            _drop(x_ptr, out_ptr, first + i * PART, n, random, threshold, scale)


def _block(x_N: torch.Tensor, thread_bytes: int) -> int:
    """Elements of a program."""
    return 32 * WARPS * thread_bytes // x_N.element_size()


def bind_rand(x_N: torch.Tensor, p: float) -> Launch:
    """A call of Philox an element. Each call uses a new seed; a captured call keeps the seed of its capture.

    Raises BadField for a vector that is not contiguous.
    """
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    n, block = x_N.numel(), _block(x_N, BYTES_PER_THREAD)
    grid, seeds = (triton.cdiv(n, block),), itertools.count(2)

    def launch() -> torch.Tensor:
        rand_kernel[grid](x_N, out_N, n, p, 1 / (1 - p), next(seeds), BLOCK=block, num_warps=WARPS)
        return out_N

    return launch


def bind_philox(x_N: torch.Tensor, p: float) -> Launch:
    """A call of Philox for four elements, or for eight of 16 bits; the rest as `bind_rand`."""
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    halves = x_N.element_size() == 2
    n, block = x_N.numel(), _block(x_N, BYTES_PER_THREAD_PHILOX)
    grid, seeds = (triton.cdiv(n, block),), itertools.count(2)
    # In units of 2^-16, the resolution of half a number.
    threshold = (round(p * 2**16) << 16) - 2**31
    part = block // (8 if halves else 4)

    def launch() -> torch.Tensor:
        philox_kernel[grid](
            x_N, out_N, n, threshold, 1 / (1 - p), next(seeds), PART=part, HALVES=halves, num_warps=WARPS
        )
        return out_N

    return launch
