"""Triton kernel of the chains that is compiled for the sizes and the number of steps."""

from __future__ import annotations

import torch
import triton
import triton.language as tl

from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels.layout import require_contiguous
from kernelviz.ops.pointwise_chain import triton as loops

MOST_STEPS = 16
"""That the kernel repeats in its code; the factors of all are in registers at once."""
MOST_ELEMENTS = 2**30
"""All indices, also of threads behind the last element, are below 2^31."""
FEW, SOME, MANY = 2**10, 2**16, 2**22
"""Elements up to which a thread has one, and two, and beyond which it has eight also where each loads factors of its own: as
torch.compile found on an H200. 149,204 rows of 970 fp32 take 308 us in 2 steps with two a thread, 272 with eight, 269 there."""
PROGRAMS_AT_ONCE = 2**15
"""Elements of as many programs with two elements a thread as have a multiprocessor each (H200: 132). Twice as many with one
number a step have four elements a thread: 44,352 fp32 took 1.50 us with two, and 1.40 in torch.compile."""


FEW_STEPS, SOME_PROGRAMS = 8, 2**18
"""Steps beyond which a thread of up to so many elements has two, so that the code is short: 131,072 fp32 with one number a step
take 328 instructions in 16 steps with eight elements a thread and 128 with two, of which each line is fetched from memory. H200:
2.06 us with eight, 1.79 with two and in torch.compile. Both limits are estimates."""


def block_of(elements: int, steps: int, *, rows: bool) -> tuple[int, int]:
    """Elements and warps of a program; fewer elements a thread where each loads factors of its own (`rows`), or in many steps.

    >>> block_of(500, 2, rows=False), block_of(2**14, 2, rows=True), block_of(2**20, 2, rows=True), block_of(2**20, 2, rows=False)
    ((128, 4), (256, 4), (512, 8), (1024, 4))
    >>> block_of(44_352, 2, rows=False), block_of(44_352, 2, rows=True)
    ((512, 4), (256, 4))
    >>> block_of(2**22 + 1, 2, rows=True), block_of(2**17, 16, rows=False)
    ((1024, 4), (512, 8))
    """
    if elements <= SOME:
        return (128 if elements <= FEW else 256 if rows or elements <= PROGRAMS_AT_ONCE else 512), 4
    narrow = elements <= MANY if rows else steps > FEW_STEPS and elements <= SOME_PROGRAMS
    return (512, 8) if narrow else (1024, 4)


@triton.jit
def chain_known_size_kernel(
    x_ptr,
    s_ptr,
    b_ptr,
    out_ptr,
    SIZE: tl.constexpr,
    COLUMNS: tl.constexpr,
    STEPS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < SIZE
    v = tl.load(x_ptr + at, mask=inside).to(tl.float32)
    for step in tl.static_range(STEPS):
        if COLUMNS == 1:
            s, b = tl.load(s_ptr + step), tl.load(b_ptr + step)
        else:
            # A load of its own for each element, so that the compiler may issue all of them before the first is used.
            factor = step * COLUMNS + at % COLUMNS
            s, b = tl.load(s_ptr + factor, mask=inside), tl.load(b_ptr + factor, mask=inside)
        v = tl.maximum(v * s.to(tl.float32) + b.to(tl.float32), 0.0, propagate_nan=tl.PropagateNan.ALL)
    tl.store(out_ptr + at, v.to(out_ptr.dtype.element_ty), mask=inside)


def bind_rows(x_MN: torch.Tensor, s_KN: torch.Tensor, b_KN: torch.Tensor) -> Launch:
    """Up to 16 steps of up to 2^30 elements and factors, else tiles in a loop of steps; BadField for tensors that are not
    contiguous.
    """
    require_contiguous(x_MN=x_MN, s_KN=s_KN, b_KN=b_KN)
    if not _is_known(x_MN, s_KN):
        return loops.bind_rows(x_MN, s_KN, b_KN)
    return _bind(x_MN, s_KN, b_KN, x_MN.shape[1])


def bind_scalars(x_N: torch.Tensor, s_K: torch.Tensor, b_K: torch.Tensor) -> Launch:
    """As `bind_rows`, with one number of each kind a step."""
    require_contiguous(x_N=x_N, s_K=s_K, b_K=b_K)
    return _bind(x_N, s_K, b_K, 1) if _is_known(x_N, s_K) else loops.bind_scalars(x_N, s_K, b_K)


def _is_known(x: torch.Tensor, s: torch.Tensor) -> bool:
    return s.shape[0] <= MOST_STEPS and max(x.numel(), s.numel()) <= MOST_ELEMENTS


def _bind(x: torch.Tensor, s: torch.Tensor, b: torch.Tensor, columns: int) -> Launch:
    out = torch.empty_like(x)
    size = x.numel()
    block, warps = block_of(size, s.shape[0], rows=columns > 1)
    sizes = {"SIZE": size, "COLUMNS": columns, "STEPS": s.shape[0], "BLOCK": block}
    grid = (triton.cdiv(size, block),)

    def launch() -> torch.Tensor:
        chain_known_size_kernel[grid](x, s, b, out, **sizes, num_warps=warps)
        return out

    return launch
