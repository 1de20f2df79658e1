"""The CUDA C++ variant of `matmul` in tf32 on Hopper's tensor cores."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul.wgmma_tf32 import SPACE, Tf32Options, admits

if TYPE_CHECKING:
    from torch import Tensor


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90a"),
    dtypes=("fp32",),
    computes=("tf32",),
    techniques=("tma", "wgmma", "warp_specialised", "multicast"),
    space=SPACE,
    admits=admits,
)
def cuda_wgmma_tf32(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    rows: int = 256,
    consumers: int = 2,
    stages: int = 4,
    cluster: int = 2,
    c_boxes: int = 2,
    group: int = 0,
) -> Launch:
    """CUDA C++, wgmma in tf32: computes Cᵀ = Bᵀ Aᵀ, because only an operand in registers need not be contiguous along K."""
    from kernelviz.ops.matmul import wgmma_tf32 as kernels

    options = Tf32Options(rows=rows, consumers=consumers, stages=stages, cluster=cluster, c_boxes=c_boxes, group=group)
    return kernels.bind(a_MK, b_KN, options)
