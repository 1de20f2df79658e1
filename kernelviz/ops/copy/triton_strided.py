"""Triton kernel of `strided_copy`, compiled for the number of elements and the stride. Bits, of NaN too, stay as they are."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous

BLOCKS = ((2**10, 128), (2**16, 256))
"""Elements up to which a program has so many; of more, `MOST`. As torch.compile found on an H200."""
MOST, WARP, WARPS = 1024, 32, 4
SMALL_INDEX = 2**31
"""Elements of an input up to which all indexes, also of threads that have no element, have 32 bits."""


def block_of(n: int) -> tuple[int, int]:
    """Elements and warps of a program.

    An element a thread reaches many multiprocessors, several are stored by 16 bytes. H200: 896,710 fp16 of stride 1, of which a
    kernel that does not know their number stores each by itself, take 2.76 us there and 2.09 in torch.compile, which knows it,
    336,360 of stride 7 3.14 and 2.53.

    >>> [block_of(n) for n in (1, 100, 2000, 2**17)]
    [(32, 1), (128, 4), (256, 4), (1024, 4)]
    """
    if n <= WARP:
        return WARP, 1
    return next((elements for most, elements in BLOCKS if n <= most), MOST), WARPS


@triton.jit
def strided_copy_kernel(
    x_ptr,
    out_ptr,
    N: tl.constexpr,
    STRIDE: tl.constexpr,
    BLOCK: tl.constexpr,
    WIDE: tl.constexpr,
    POLICY: tl.constexpr,
):
    program = tl.program_id(0)
    if WIDE:
        program = program.to(tl.int64)
    offsets = program * BLOCK + tl.arange(0, BLOCK)
    # Loads of one thread that share a line follow one another: the policy keeps it in the L1.
    x = tl.load(x_ptr + offsets * STRIDE, mask=offsets < N, eviction_policy=POLICY)
    tl.store(out_ptr + offsets, x, mask=offsets < N)


def bind_strided(x_NS: torch.Tensor) -> Launch:
    """The first element of each row; raises BadField for a matrix that is not contiguous."""
    require_contiguous(x_NS=x_NS)
    n, stride = x_NS.shape
    out_N = torch.empty(n, dtype=x_NS.dtype, device=x_NS.device)
    block, warps = block_of(n)
    programs = triton.cdiv(n, block)
    wide = programs * block * stride >= SMALL_INDEX
    policy = "evict_last" if block == MOST and stride > 1 else ""
    constants = {"N": n, "STRIDE": stride, "BLOCK": block, "WIDE": wide, "POLICY": policy}

    def launch() -> torch.Tensor:
        strided_copy_kernel[(programs,)](x_NS, out_N, **constants, num_warps=warps)
        return out_N

    return launch
