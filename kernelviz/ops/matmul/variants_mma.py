"""The variants of `matmul` for the tensor cores of every GPU from Ampere on, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, variant
from kernelviz.ops.matmul.mma import SPACE, admits

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")
"""With RTX 5090; the code for A100 also runs on RTX 3090 and 4090 (sm_86, sm_89)."""


@variant(backend="cuda", needs=("nvrtc", "cuda"), computes=("tf32",), targets=EVERY_TARGET, techniques=("mma_sync",))
def cuda_wmma(a_MK: Tensor, b_KN: Tensor) -> Launch:
    """CUDA C++, tensor cores by the instructions wmma: each of eight warps multiplies fragments of 16×16 from shared memory."""
    from kernelviz.ops.matmul import mma as kernels

    return kernels.bind_wmma(a_MK, b_KN)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    computes=("tf32",),
    targets=EVERY_TARGET,
    techniques=("cp_async", "mma_sync"),
    space=SPACE,
    admits=admits,
)
def cuda_mma(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    rows: int = 0,
    columns: int = 0,
    depth: int = 0,
    stages: int = 0,
    warps: int = 0,
    group: int = 0,
) -> Launch:
    """CUDA C++, mma.sync and ldmatrix without bank conflicts, while cp.async fills a pipeline of tiles; tile by size or tuned."""
    from kernelviz.ops.matmul import mma as kernels

    parameters = {"rows": rows, "columns": columns, "depth": depth, "stages": stages, "warps": warps, "group": group}
    return kernels.bind_mma(a_MK, b_KN, parameters)


MMA_VARIANTS = (cuda_wmma, cuda_mma)
