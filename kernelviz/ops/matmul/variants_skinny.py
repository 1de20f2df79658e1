"""The variants of `matmul` for few rows, whose time is that of reading B once, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul import gemv, skinny, wgmma_skinny
from kernelviz.ops.matmul.variants_mma import EVERY_TARGET

if TYPE_CHECKING:
    from torch import Tensor


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    dtypes=("bf16", "fp16"),
    targets=EVERY_TARGET,
    techniques=("vec16",),
    largest={"m": gemv.MOST_ROWS},
    space=gemv.SPACE,
    admits=gemv.admits,
)
def cuda_gemv(
    a_MK: Tensor, b_KN: Tensor, *, columns: int = 0, warps: int = 0, depth: int = 0, parts: int = 0
) -> Launch:
    """CUDA C++ for at most 8 rows: 8 loads of 16 bytes of B at a time in each thread, multiplied and added in fp32."""
    return gemv.bind(a_MK, b_KN, {"columns": columns, "warps": warps, "depth": depth, "parts": parts})


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    dtypes=("bf16", "fp16"),
    targets=EVERY_TARGET,
    techniques=("cp_async", "mma_sync"),
    largest={"m": skinny.MOST_ROWS},
    space=skinny.SPACE,
    admits=skinny.admits,
)
def cuda_skinny(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    columns: int = 0,
    depth: int = 0,
    stages: int = 0,
    across: int = 0,
    deep: int = 0,
    parts: int = 0,
) -> Launch:
    """CUDA C++ for at most 64 rows: cp.async streams B to mma.sync, whose 16 rows are columns of C, so one row wastes little."""
    parameters = {"columns": columns, "depth": depth, "stages": stages, "across": across, "deep": deep, "parts": parts}
    return skinny.bind(a_MK, b_KN, parameters)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90a"),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma", "warp_specialised"),
    largest={"m": wgmma_skinny.MOST_ROWS},
    space=wgmma_skinny.SPACE,
    admits=wgmma_skinny.admits,
)
def cuda_wgmma_skinny(a_MK: Tensor, b_KN: Tensor, *, columns: int = 0, stages: int = 0, parts: int = 0) -> Launch:
    """CUDA C++ for at most 128 rows, wgmma with exchanged operands: columns of B fill its 64 rows; clusters add parts of K."""
    return wgmma_skinny.bind(a_MK, b_KN, {"columns": columns, "stages": stages, "parts": parts})


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90a"),
    dtypes=("bf16", "fp16"),
    techniques=("tma", "wgmma", "warp_specialised"),
    space=wgmma_skinny.PARTS_SPACE,
    admits=wgmma_skinny.admits_parts,
)
def cuda_wgmma_parts(
    a_MK: Tensor, b_KN: Tensor, *, rows: int = 0, columns: int = 0, stages: int = 0, parts: int = 0
) -> Launch:
    """CUDA C++ for few tiles, the kernel of cuda_wgmma_skinny: a cluster divides K, and adds up through its shared memory."""
    return wgmma_skinny.bind_parts(a_MK, b_KN, {"rows": rows, "columns": columns, "stages": stages, "parts": parts})


SKINNY_VARIANTS = (cuda_gemv, cuda_skinny, cuda_wgmma_skinny, cuda_wgmma_parts)
