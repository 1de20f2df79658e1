"""Triton kernels of `add`, `mul` and `div`."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

EVICTIONS = ("", "evict_first", "evict_last")
"""Cache hints of loads and stores, by number; none at 0."""


@triton.jit
def _combined(x, y, OPERATION: tl.constexpr):
    # In fp32. Triton's quotient of fp32 numbers is PTX's div.full, within 2 ulp.
    a = x.to(tl.float32)
    b = y.to(tl.float32)
    if OPERATION == "add":
        result = a + b
    elif OPERATION == "mul":
        result = a * b
    else:
        result = a / b
    return result.to(x.dtype)


@triton.jit
def arithmetic_kernel(x_ptr, y_ptr, out_ptr, n, OPERATION: tl.constexpr, BLOCK: tl.constexpr):
    # 64-bit offsets: n reaches 2^31 and more on a GPU with 140 GB.
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, _combined(x, y, OPERATION), mask=mask)


@triton.jit
def tunable_arithmetic_kernel(
    x_ptr, y_ptr, out_ptr, n, OPERATION: tl.constexpr, BLOCK: tl.constexpr, PARTS: tl.constexpr, EVICTION: tl.constexpr
):
    first = tl.program_id(0).to(tl.int64) * (BLOCK * PARTS)
    for part in tl.static_range(PARTS):
        offsets = first + part * BLOCK + tl.arange(0, BLOCK)
        mask = offsets < n
        x = tl.load(x_ptr + offsets, mask=mask, eviction_policy=EVICTION)
        y = tl.load(y_ptr + offsets, mask=mask, eviction_policy=EVICTION)
        tl.store(out_ptr + offsets, _combined(x, y, OPERATION), mask=mask, eviction_policy=EVICTION)


def adaptive_block(n: int) -> int:
    """Elements a program by problem size, as published (source: GPU operations guide).

    >>> adaptive_block(1000), adaptive_block(2**20), adaptive_block(2**24)
    (256, 512, 1024)
    """
    if n < 262_144:
        return 256
    return 512 if n < 4_194_304 else 1024


def bind_arithmetic(x_N: torch.Tensor, y_N: torch.Tensor, operation: str, *, block: int) -> Launch:
    """Launch of `arithmetic_kernel` over contiguous vectors of one length; raises BadField if not contiguous."""
    require_contiguous(x_N=x_N, y_N=y_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    grid = (triton.cdiv(n, block),)

    def launch() -> torch.Tensor:
        arithmetic_kernel[grid](x_N, y_N, out_N, n, OPERATION=operation, BLOCK=block)
        return out_N

    return launch


def bind_tunable(
    x_N: torch.Tensor, y_N: torch.Tensor, operation: str, *, block: int, warps: int, parts: int, evict: int
) -> Launch:
    """As `bind_arithmetic`, `parts` blocks a program one after the other; `evict` is a place in EVICTIONS."""
    require_contiguous(x_N=x_N, y_N=y_N)
    out_N = torch.empty_like(x_N)
    n = x_N.numel()
    grid = (triton.cdiv(n, block * parts),)
    eviction = EVICTIONS[evict]

    def launch() -> torch.Tensor:
        tunable_arithmetic_kernel[grid](
            x_N, y_N, out_N, n, OPERATION=operation, BLOCK=block, PARTS=parts, EVICTION=eviction, num_warps=warps
        )
        return out_N

    return launch
