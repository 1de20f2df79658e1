"""The variants of `block_scaled_matmul`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import Launch, variant
from kernelviz.ops.matmul import mma_fp8, wgmma_fp8
from kernelviz.ops.matmul.mma_fp8 import MmaFp8Options
from kernelviz.ops.matmul.variants_fp8 import (
    CUDA,
    CUDA_MMA,
    CUDA_SPACE,
    GROUPED,
    NARROW,
    TRITON,
    TRITON_TMA,
    admits_triton,
)
from kernelviz.ops.matmul.wgmma_fp8 import Fp8Options

if TYPE_CHECKING:
    from torch import Tensor


@variant(backend="torch")
def torch_eager(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Launch:
    """Both matrices times their scales in fp32, then torch's product in fp32: plain, and far from the speed of fp8."""
    from kernelviz.ops.matmul.torch_fp8 import bind_block_dequantised

    return bind_block_dequantised(a_MK, b_NK, a_scale, b_scale)


@variant(backend="torch", needs=("cuda", "sm_90a"))
def torch_scaled_mm(a_MK: Tensor, b_NK: Tensor, a_scale: Tensor, b_scale: Tensor) -> Launch:
    """torch._scaled_mm with these scales into a buffer that was allocated before: cuBLAS, on Hopper only."""
    from kernelviz.ops.matmul.torch_fp8 import bind_block_scaled_mm

    return bind_block_scaled_mm(a_MK, b_NK, a_scale, b_scale)


@variant(**TRITON, space=GROUPED, admits=admits_triton)
def triton_grouped(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 128,
    warps: int = 8,
    stages: int = 3,
    group: int = 8,
) -> Launch:
    """Triton, one tile of the product per program, loaded through pointers: for every size and every GPU with fp8."""
    from kernelviz.ops.matmul import triton_fp8 as kernels

    tile = kernels.Tile(rows=tile_m, columns=tile_n, warps=warps, stages=stages, group=group)
    return kernels.bind_grouped(a_MK, b_NK, a_scale, b_scale, tile, blocks=True)


@variant(**TRITON_TMA, space=NARROW, admits=admits_triton)
def triton_descriptors(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 128,
    warps: int = 8,
    stages: int = 4,
    group: int = 8,
    flatten: int = 1,
) -> Launch:
    """Triton, persistent, with tensor descriptors made on the device: TMA loads and stores tiles of 128×128."""
    from kernelviz.ops.matmul import triton_fp8 as kernels

    tile = kernels.Tile(rows=tile_m, columns=tile_n, warps=warps, stages=stages, group=group, flatten=flatten)
    return kernels.bind_descriptors(a_MK, b_NK, a_scale, b_scale, tile, blocks=True)


@variant(**CUDA_MMA)
def cuda_mma(
    a_MK: Tensor,
    b_NK: Tensor,
    a_scale: Tensor,
    b_scale: Tensor,
    *,
    rows: int = 128,
    stages: int = 3,
    group: int = 8,
) -> Launch:
    """CUDA C++, mma.sync of e4m3 and cp.async, for RTX 4090 and 5090; Hopper has no such instruction and converts to fp16."""
    options = MmaFp8Options(rows=rows, stages=stages, group=group, two_level=True, blocks=True)
    return mma_fp8.bind(a_MK, b_NK, a_scale, b_scale, options)


@variant(**CUDA, space=CUDA_SPACE, admits=wgmma_fp8.admits)
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
    """CUDA C++, wgmma of e4m3: scales sums of 128 terms while the other warpgroup multiplies; scales are loaded a block ahead."""
    options = Fp8Options(
        columns=columns, stages=stages, cluster=cluster, c_boxes=c_boxes, group=group, two_level=True, blocks=True
    )
    return wgmma_fp8.bind(a_MK, b_NK, a_scale, b_scale, options)


BLOCK_SCALED_VARIANTS = (torch_eager, torch_scaled_mm, triton_grouped, triton_descriptors, cuda_mma, cuda_wgmma)
