"""Triton kernel of `scale`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous


@triton.jit
def scale_kernel(x_ptr, out_ptr, n, scale, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    # In fp32, as torch does it: with the scalar rounded to fp16 first, the product would be off by up to two roundings.
    y = tl.load(x_ptr + offsets, mask=mask).to(tl.float32) * scale
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def bind_scale(x_N: torch.Tensor, scale: float, *, block: int) -> Launch:
    """Launch of `scale_kernel` over a contiguous vector; raises BadField if not contiguous."""
    require_contiguous(x_N=x_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    grid = (triton.cdiv(n, block),)

    def launch() -> torch.Tensor:
        scale_kernel[grid](x_N, out_N, n, scale, BLOCK=block)
        return out_N

    return launch
