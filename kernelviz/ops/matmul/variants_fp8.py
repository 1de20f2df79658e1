"""The variants of `scaled_matmul`, in ladder order; what those of `block_scaled_matmul` share with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, variant
from kernelviz.ops.matmul import mma_fp8
from kernelviz.ops.matmul.mma_fp8 import MmaFp8Options
from kernelviz.ops.matmul.reference_fp8 import BLOCK, FAST, PRECISE
from kernelviz.ops.matmul.tiles import too_many_registers, too_much_shared
from kernelviz.ops.matmul.wgmma_fp8 import Fp8Options, admits

if TYPE_CHECKING:
    from torch import Tensor

TRITON: dict[str, Any] = {
    "backend": "triton",
    "needs": ("triton", "cuda", "sm_89"),
    "targets": ("sm_90", "sm_100", "sm_120"),
    "techniques": ("cp_async", "mma_sync", "wgmma", "tcgen05"),
}
TRITON_TMA: dict[str, Any] = {
    "backend": "triton",
    "needs": ("triton", "cuda", "sm_90"),
    "targets": ("sm_90",),
    "techniques": ("tma", "wgmma"),
}
CUDA_MMA: dict[str, Any] = {
    "backend": "cuda",
    "needs": ("nvrtc", "cuda", "sm_89"),
    "targets": ("sm_90", "sm_100", "sm_120"),
    "techniques": ("cp_async", "mma_sync"),
    "space": mma_fp8.SPACE,
    "admits": mma_fp8.admits,
}
CUDA: dict[str, Any] = {
    "backend": "cuda",
    "needs": ("nvrtc", "cuda", "sm_90a"),
    "techniques": ("tma", "wgmma", "warp_specialised", "multicast"),
}


def admits_triton(configuration: Configuration, problem: Problem) -> str | None:
    """Registers and shared memory suffice. Where parts of K are added in fp32, a thread holds two tiles of sums."""
    c = configuration
    sums = 1 if problem.compute == FAST else 2
    stage = (c["tile_m"] + c["tile_n"]) * BLOCK
    stored = c["tile_m"] * c["tile_n"] * 2 if "flatten" in c else 0
    return too_many_registers(c["tile_m"] * sums, c["tile_n"], 32 * c["warps"]) or too_much_shared(
        stage * c["stages"] + stored
    )


GROUPED = {
    "tile_m": (128, 64, 32, 16),
    "tile_n": (128, 64),
    "warps": (8, 4),
    "stages": (3, 4, 2),
    "group": (8, 4, 16),
}
_DESCRIPTORS = {
    "tile_m": (128, 256, 64),
    "tile_n": (256, 128),
    "warps": (8, 4),
    "stages": (3, 4, 2),
    "group": (8, 4, 16),
    "flatten": (1, 0),
}
NARROW = _DESCRIPTORS | {"tile_m": (128, 64), "tile_n": (128, 64), "stages": (4, 5, 3)}
CUDA_SPACE = {
    "columns": (256, 192, 128),
    "stages": (4, 3, 5, 6),
    "cluster": (2, 1, 4),
    "c_boxes": (2, 3, 1, 4),
    "group": (8, 4, 0, 16),
}


@variant(backend="torch", needs=("sm_89",))
def torch_eager(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor, *, compute: str | None = None) -> Launch:
    """torch._scaled_mm into a buffer that was allocated before, with or without fast accumulation: cuBLAS on a GPU."""
    from kernelviz.ops.matmul.torch_fp8 import bind_scaled_mm

    return bind_scaled_mm(a_MK, b_NK, a_scale, b_scale, compute)


@variant(backend="torch", computes=(PRECISE,))
def torch_dequantised(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Launch:
    """Both matrices converted to bf16, multiplied by torch.mm with a result in fp32, and scaled: what a GPU without fp8 does."""
    from kernelviz.ops.matmul.torch_fp8 import bind_dequantised

    return bind_dequantised(a_MK, b_NK, a_scale, b_scale)


@variant(**TRITON, space=GROUPED, admits=admits_triton)
def triton_grouped(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    compute: str | None = None,
    tile_m: int = 128,
    tile_n: int = 128,
    warps: int = 8,
    stages: int = 3,
    group: int = 8,
) -> Launch:
    """Triton, one tile of the product per program, loaded through pointers: for every size and every GPU with fp8."""
    from kernelviz.ops.matmul import triton_fp8 as kernels

    tile = kernels.Tile(rows=tile_m, columns=tile_n, warps=warps, stages=stages, group=group)
    return kernels.bind_grouped(a_MK, b_NK, a_scale, b_scale, tile, compute=compute)


@variant(**TRITON_TMA, computes=(FAST,), space=_DESCRIPTORS, admits=admits_triton)
def triton_descriptors(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    compute: str | None = None,
    tile_m: int = 128,
    tile_n: int = 256,
    warps: int = 8,
    stages: int = 3,
    group: int = 8,
    flatten: int = 1,
) -> Launch:
    """Triton, persistent, with tensor descriptors made on the device: TMA loads and stores tiles of 128×256."""
    from kernelviz.ops.matmul import triton_fp8 as kernels

    tile = kernels.Tile(rows=tile_m, columns=tile_n, warps=warps, stages=stages, group=group, flatten=flatten)
    return kernels.bind_descriptors(a_MK, b_NK, a_scale, b_scale, tile, compute=compute)


@variant(**TRITON_TMA, computes=(PRECISE,), space=NARROW, admits=admits_triton)
def triton_two_level(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    compute: str | None = None,
    tile_m: int = 128,
    tile_n: int = 128,
    warps: int = 8,
    stages: int = 4,
    group: int = 8,
    flatten: int = 1,
) -> Launch:
    """Triton, as triton_descriptors, with sums of 128 terms added in fp32: two tiles of sums in registers, so 128×128."""
    from kernelviz.ops.matmul import triton_fp8 as kernels

    tile = kernels.Tile(rows=tile_m, columns=tile_n, warps=warps, stages=stages, group=group, flatten=flatten)
    return kernels.bind_descriptors(a_MK, b_NK, a_scale, b_scale, tile, compute=compute)


@variant(**CUDA_MMA)
def cuda_mma(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    compute: str | None = None,
    rows: int = 128,
    stages: int = 3,
    group: int = 8,
) -> Launch:
    """CUDA C++, mma.sync of e4m3 and cp.async, for RTX 4090 and 5090; Hopper has no such instruction and converts to fp16."""
    options = MmaFp8Options(rows=rows, stages=stages, group=group, two_level=compute == PRECISE)
    return mma_fp8.bind(a_MK, b_NK, a_scale, b_scale, options)


@variant(**CUDA, computes=(FAST,), space=CUDA_SPACE, admits=admits)
def cuda_wgmma(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    columns: int = 256,
    stages: int = 4,
    cluster: int = 2,
    c_boxes: int = 2,
    group: int = 8,
) -> Launch:
    """CUDA C++, wgmma of e4m3: as cuda_wgmma_tma_store of matmul, with stages of 128 of K in the same shared memory."""
    from kernelviz.ops.matmul import wgmma_fp8 as kernels

    options = Fp8Options(columns=columns, stages=stages, cluster=cluster, c_boxes=c_boxes, group=group)
    return kernels.bind(a_MK, b_NK, a_scale, b_scale, options)


@variant(
    **CUDA, computes=(PRECISE,), space=CUDA_SPACE | {"columns": (192, 256, 128), "c_boxes": (3, 2, 1, 4)}, admits=admits
)
def cuda_wgmma_two_level(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    columns: int = 192,
    stages: int = 4,
    cluster: int = 2,
    c_boxes: int = 3,
    group: int = 8,
) -> Launch:
    """CUDA C++, wgmma: sums of 128 terms are added in fp32 while the other warpgroup multiplies, in tiles of 128×192."""
    from kernelviz.ops.matmul import wgmma_fp8 as kernels

    options = Fp8Options(columns=columns, stages=stages, cluster=cluster, c_boxes=c_boxes, group=group, two_level=True)
    return kernels.bind(a_MK, b_NK, a_scale, b_scale, options)


SCALED_VARIANTS = (
    torch_eager,
    torch_dequantised,
    triton_grouped,
    triton_descriptors,
    triton_two_level,
    cuda_mma,
    cuda_wgmma,
    cuda_wgmma_two_level,
)
