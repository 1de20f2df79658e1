"""The variants of `branch_divergence` in the order of the ladder: both branches, a branch, and warps without divergence.

There is none by torch.compile: Inductor had not compiled the 128 dependent steps after ten minutes (torch 2.13, CPU).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, variant

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")


@variant(backend="torch")
def torch_eager(x_N: Tensor, *, g: int) -> Launch:
    """Single torch ops: 257 launches for both branches of every element, and a selection; each reads and writes a vector."""
    from kernelviz.ops.branch_divergence import torch as kernels

    return kernels.bind_both(x_N, g)


@variant(backend="triton", needs=("triton", "cuda"), targets=EVERY_TARGET)
def triton_select(x_N: Tensor, *, g: int) -> Launch:
    """Triton, both branches and tl.where: it has no branch by element, so it takes as long whatever g is."""
    from kernelviz.ops.branch_divergence import triton as kernels

    return kernels.bind_select(x_N, g)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_select(x_N: Tensor, *, g: int) -> Launch:
    """CUDA C++, both branches and a selection: no divergence, and twice the work whatever g is."""
    from kernelviz.ops.branch_divergence import cuda as kernels

    return kernels.bind_select(x_N, g)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_divergent(x_N: Tensor, *, g: int) -> Launch:
    """CUDA C++, if and else: below 32 neighbours a warp executes both branches, from 32 on (multiples of 32) one of them."""
    from kernelviz.ops.branch_divergence import cuda as kernels

    return kernels.bind_divergent(x_N, g)


@variant(backend="cuda", needs=("nvrtc", "cuda"), targets=EVERY_TARGET)
def cuda_regrouped(x_N: Tensor, *, g: int) -> Launch:
    """CUDA C++, if and else, but threads take elements so that each warp has one branch: divergence is gone, whatever g is."""
    from kernelviz.ops.branch_divergence import cuda as kernels

    return kernels.bind_regrouped(x_N, g)


VARIANTS = (
    torch_eager,
    triton_select,
    cuda_select,
    cuda_divergent,
    cuda_regrouped,
)
