"""CUDA C++ kernels of `branch_divergence`, bound to tensors."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import TYPE_CHECKING

from kernelviz.core.errors import BadField
from kernelviz.ops.branch_divergence.reference import RATE, STEPS
from kernelviz.ops.catalog.variant import Launch
from kernelviz.ops.kernels import nvrtc
from kernelviz.ops.kernels.layout import require_contiguous

if TYPE_CHECKING:
    from torch import Tensor

SOURCE = Path(__file__).parent / "cuda.cu"
DEFINES = {"STEPS": str(STEPS), "RATE": f"{RATE!r}f"}
THREADS = 256
HALF = THREADS // 2
MOST_ELEMENTS = 2**31 - 1
"""The kernels count in 32 bits, because a division of 64-bit numbers would take as long as a tenth of a branch."""


def bind_divergent(x_N: Tensor, g: int) -> Launch:
    """A branch in each thread. All binds raise BadField for vectors that are not contiguous or that 32 bits do not count."""
    return _bind("branch_divergent", x_N, g, blocks=-(-x_N.numel() // THREADS))


def bind_select(x_N: Tensor, g: int) -> Launch:
    """Both branches in each thread, then a selection."""
    return _bind("branch_select", x_N, g, blocks=-(-x_N.numel() // THREADS))


def bind_regrouped(x_N: Tensor, g: int) -> Launch:
    """Warps whose threads take one branch. Groups of more than 128 leave nearly all warps undivided as they are."""
    if g > HALF:
        return bind_divergent(x_N, g)
    return _bind("branch_regrouped", x_N, g, blocks=-(-x_N.numel() // (pairs_of(g) * 2 * g)))


def pairs_of(g: int) -> int:
    """Pairs of groups of a block: as many groups of g as 128 threads have room for.

    >>> [pairs_of(g) for g in (1, 3, 32, 65, 128)]
    [128, 42, 4, 1, 1]
    """
    return HALF // g


def defines(g: int) -> dict[str, str]:
    """What the kernels are compiled with."""
    return {**DEFINES, "GROUP": f"{g}u"}


def _bind(name: str, x_N: Tensor, g: int, *, blocks: int) -> Launch:
    import torch

    require_contiguous(x_N=x_N)
    n = x_N.numel()
    for axis, size in (("n", n), ("g", g)):
        if size > MOST_ELEMENTS:
            raise BadField(f"size {axis}", size, f"this kernel counts in 32 bits; it takes at most {MOST_ELEMENTS}")
    out_N = torch.empty_like(x_N)
    kernel = nvrtc.kernel(SOURCE, name, defines(g))
    arguments = (x_N.data_ptr(), out_N.data_ptr(), ctypes.c_uint(n))

    def launch() -> Tensor:
        nvrtc.launch(kernel, blocks, THREADS, *arguments)
        return out_N

    return launch
