"""Triton kernels of the casts."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous


@triton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask).to(tl.float32)
    # To fp8 saturating, as the GPU's instruction does.
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=mask)


def bind_cast(x_N: torch.Tensor, to: torch.dtype, *, block: int) -> Launch:
    """Launch of `cast_kernel` over a contiguous vector; raises BadField if not contiguous."""
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N, dtype=to)
    n = x_N.numel()
    grid = (triton.cdiv(n, block),)

    def launch() -> torch.Tensor:
        cast_kernel[grid](x_N, out_N, n, BLOCK=block)
        return out_N

    return launch
