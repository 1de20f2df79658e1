"""Triton kernels of `copy`. Loads and stores have one type, so the bits of every number, NaN included, stay as they are."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

BLOCK = 1024
PERSISTENT_BYTES = 16 * 1024
"""Of a persistent program's block: 64 bytes a thread, so four 16-byte loads of a thread are in flight at once."""
PERSISTENT_WARPS = 8
WARPS_A_MULTIPROCESSOR = 64
"""The most that an SM of A100, H100, H200 and B200 holds (CUDA C++ Programming Guide, technical specifications)."""


@triton.jit
def copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


@triton.jit
def persistent_copy_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    columns = tl.arange(0, BLOCK)
    for first in tl.range(start, n, step):
        offsets = first + columns
        mask = offsets < n
        tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask), mask=mask)


def bind_block(x_N: torch.Tensor) -> Launch:
    """1024 elements a program; raises BadField for a vector that is not contiguous."""
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    grid = (triton.cdiv(n, BLOCK),)

    def launch() -> torch.Tensor:
        copy_kernel[grid](x_N, out_N, n, BLOCK=BLOCK)
        return out_N

    return launch


def bind_persistent(x_N: torch.Tensor) -> Launch:
    """As many programs as are resident at once; raises BadField for a vector that is not contiguous."""
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    block = PERSISTENT_BYTES // x_N.element_size()
    resident = multiprocessors(x_N.device) * (WARPS_A_MULTIPROCESSOR // PERSISTENT_WARPS)
    grid = (min(triton.cdiv(n, block), resident),)

    def launch() -> torch.Tensor:
        persistent_copy_kernel[grid](x_N, out_N, n, BLOCK=block, num_warps=PERSISTENT_WARPS)
        return out_N

    return launch
