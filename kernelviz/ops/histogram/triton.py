"""Triton kernel of `histogram`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous

BINS = 256
BLOCK = 8192
WARPS = 8
PROGRAMS_A_MULTIPROCESSOR = 8


@triton.jit
def histogram_kernel(x_ptr, counts_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    start = tl.program_id(0).to(tl.int64) * BLOCK
    step = tl.num_programs(0).to(tl.int64) * BLOCK
    columns = tl.arange(0, BLOCK)
    counts = tl.zeros((BINS,), tl.int32)
    for first in tl.range(start, n, step):
        at = first + columns
        x = tl.load(x_ptr + at, mask=at < n, other=0).to(tl.int32)
        counts += tl.histogram(x, BINS, mask=at < n)
    tl.atomic_add(counts_ptr + tl.arange(0, BINS), counts.to(tl.int64), sem="relaxed")


def bind_histogram(x_N: torch.Tensor) -> Launch:
    """As many programs as are resident at once; raises BadField for a vector that is not contiguous."""
    require_contiguous(x_N=x_N)
    n = x_N.numel()
    counts = torch.empty(BINS, dtype=torch.int64, device=x_N.device)
    programs = min(triton.cdiv(n, BLOCK), multiprocessors(x_N.device) * PROGRAMS_A_MULTIPROCESSOR)

    def launch() -> torch.Tensor:
        counts.zero_()
        histogram_kernel[(programs,)](x_N, counts, n, BLOCK=BLOCK, BINS=BINS, num_warps=WARPS)
        return counts

    return launch
