"""The Triton kernels of `copy` on vectors that begin some bytes after an aligned address.

Triton compiles a kernel for pointers that are multiples of 16 bytes, and another one, with narrower accesses, for others.
"""

from __future__ import annotations

import torch
import triton

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.copy.offset import empty_at
from kernelviz.ops.copy.triton import (
    BLOCK,
    PERSISTENT_BYTES,
    PERSISTENT_WARPS,
    WARPS_A_MULTIPROCESSOR,
    copy_kernel,
    persistent_copy_kernel,
)
from kernelviz.ops.kernels.gpu import multiprocessors
from kernelviz.ops.kernels.layout import require_contiguous


def bind_block(x_N: torch.Tensor, offset_bytes: int) -> Launch:
    """As `kernelviz.ops.copy.triton.bind_block`, into a vector with the same offset as x."""
    require_contiguous(x_N=x_N)
    out_N, n = empty_at(x_N, offset_bytes), x_N.numel()
    grid = (triton.cdiv(n, BLOCK),)

    def launch() -> torch.Tensor:
        copy_kernel[grid](x_N, out_N, n, BLOCK=BLOCK)
        return out_N

    return launch


def bind_persistent(x_N: torch.Tensor, offset_bytes: int) -> Launch:
    """As `kernelviz.ops.copy.triton.bind_persistent`, into a vector with the same offset as x."""
    require_contiguous(x_N=x_N)
    out_N, n = empty_at(x_N, offset_bytes), x_N.numel()
    block = PERSISTENT_BYTES // x_N.element_size()
    grid = (min(triton.cdiv(n, block), multiprocessors(x_N.device) * (WARPS_A_MULTIPROCESSOR // PERSISTENT_WARPS)),)

    def launch() -> torch.Tensor:
        persistent_copy_kernel[grid](x_N, out_N, n, BLOCK=block, num_warps=PERSISTENT_WARPS)
        return out_N

    return launch
