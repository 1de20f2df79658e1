"""Triton kernels of `sum` and `mean`: the sums of programs, then their sum."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

BLOCK_BYTES = 16 * 1024
"""Size of a program's block: 64 bytes a thread, so that each thread has four 16-byte loads in flight."""
WARPS = 8
PROGRAMS_A_MULTIPROCESSOR = 8


@triton.jit
def partial_sums_kernel(x_ptr, partials_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    columns = tl.arange(0, BLOCK)
    # One sum for each element of the block, so that threads synchronise only once, after the loop.
    sums = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(start, n, step):
        offsets = first + columns
        sums += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0).to(tl.float32)
    tl.store(partials_ptr + tl.program_id(0), tl.sum(sums, axis=0))


@triton.jit
def sum_of_partials_kernel(partials_ptr, out_ptr, count, divisor, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(partials_ptr + offsets, mask=offsets < count, other=0.0), axis=0)
    tl.store(out_ptr, (total / divisor).to(out_ptr.dtype.element_ty))


def bind_two_pass(x_N: torch.Tensor, divisor: int) -> Launch:
    """As many programs as are resident at once, then one program; raises BadField for a vector that is not contiguous."""
    require_contiguous(x_N=x_N)
    n = x_N.numel()
    block = BLOCK_BYTES // x_N.element_size()
    programs = min(triton.cdiv(n, block), multiprocessors(x_N.device) * PROGRAMS_A_MULTIPROCESSOR)
    partials = torch.empty(programs, dtype=torch.float32, device=x_N.device)
    out_1 = torch.empty(1, dtype=x_N.dtype, device=x_N.device)
    width = triton.next_power_of_2(programs)

    def launch() -> torch.Tensor:
        partial_sums_kernel[(programs,)](x_N, partials, n, BLOCK=block, num_warps=WARPS)
        sum_of_partials_kernel[(1,)](partials, out_1, programs, float(divisor), BLOCK=width)
        return out_1

    return launch
