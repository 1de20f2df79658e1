"""Triton kernel of `branch_divergence`. Triton has no branches by element: it computes both, and selects."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.branch_divergence.reference import RATE, STEPS
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

BLOCK = 256
"""Two elements a thread of 4 warps: their steps do not depend on each other, so one hides the latency of the other."""


@triton.jit
def select_kernel(x_ptr, out_ptr, n, g, RATE: tl.constexpr, STEPS: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    first = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    second = tl.abs(first)
    for _ in range(STEPS):
        first += RATE * (1.0 - first)
        second -= RATE * second * second
    tl.store(out_ptr + offsets, tl.where(offsets // g % 2 == 0, first, second), mask=mask)


def bind_select(x_N: torch.Tensor, g: int) -> Launch:
    """Launch of `select_kernel` over a contiguous vector; raises BadField if not contiguous."""
    require_contiguous(x_N=x_N)
    out_N, n = torch.empty_like(x_N), x_N.numel()
    grid = (triton.cdiv(n, BLOCK),)

    def launch() -> torch.Tensor:
        select_kernel[grid](x_N, out_N, n, g, RATE=RATE, STEPS=STEPS, BLOCK=BLOCK)
        return out_N

    return launch
