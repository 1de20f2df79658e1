"""Triton kernels of `add`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.layout import require_contiguous
from kernelviz.ops.op import Launch


@triton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


def adaptive_block(n: int) -> int:
    """Elements a program by problem size, as published (source: GPU operations guide).

    >>> adaptive_block(1000), adaptive_block(2**20), adaptive_block(2**24)
    (256, 512, 1024)
    """
    if n < 262_144:
        return 256
    return 512 if n < 4_194_304 else 1024


def bind_add(x_N: torch.Tensor, y_N: torch.Tensor, *, block: int) -> Launch:
    """Launch of `add_kernel` over contiguous vectors of one length; raises BadField for others."""
    require_contiguous(x_N=x_N, y_N=y_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    grid = (triton.cdiv(n, block),)

    def launch() -> torch.Tensor:
        add_kernel[grid](x_N, y_N, out_N, n, BLOCK=block)
        return out_N

    return launch
