"""The variants of `w4a16_matmul`, in ladder order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernelviz.ops.catalog.variant import TARGETS, Launch, variant
from kernelviz.ops.w4a16_matmul import bulk, gemv, mma, tiles

if TYPE_CHECKING:
    from torch import Tensor

EVERY_TARGET = (*TARGETS, "sm_120")
"""With RTX 5090; the code for A100 also runs on RTX 3090 and 4090 (sm_86, sm_89)."""


@variant(backend="torch")
def torch_eager(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor) -> Launch:
    """Torch ops that write the weights as 16 bits, then torch.mm: both are timed, and the first moves many times the bytes."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.w4a16_matmul.torch import dequantise_and_multiply

    return in_precision(lambda: dequantise_and_multiply(x_MK, w_NGB, s_GN, z_GH), x_MK, None)


@variant(backend="inductor", needs=("inductor",), slow_compile=True)
def torch_compile(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor) -> Launch:
    """torch.compile of these ops: inductor fuses the dequantisation into one kernel."""
    from kernelviz.ops.kernels.inductor import compiled
    from kernelviz.ops.kernels.torch_precision import in_precision, precision
    from kernelviz.ops.w4a16_matmul.torch import dequantise_and_multiply

    # torch.compile compiles again where a setting has changed.
    with precision(x_MK, None):
        run = compiled(dequantise_and_multiply, x_MK, w_NGB, s_GN, z_GH)
    return in_precision(run, x_MK, None)


@variant(backend="triton", needs=("triton", "cuda"), techniques=("vec16",))
def triton_dequantise(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor) -> Launch:
    """A Triton kernel writes the weights as 16 bits, then torch.mm: with many rows of x the extra bytes matter little."""
    from kernelviz.ops.kernels.torch_precision import in_precision
    from kernelviz.ops.w4a16_matmul import triton as kernels

    return in_precision(kernels.bind_dequantise(x_MK, w_NGB, s_GN, z_GH), x_MK, None)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    techniques=("cp_async", "mma_sync", "wgmma", "tcgen05"),
    space=tiles.FUSED_SPACE,
    admits=tiles.admits_fused,
)
def triton_fused(
    x_MK: Tensor,
    w_NGB: Tensor,
    s_GN: Tensor,
    z_GH: Tensor,
    *,
    rows: int = 0,
    features: int = 0,
    parts: int = 0,
    warps: int = 0,
    stages: int = 0,
    order: int = 0,
) -> Launch:
    """Triton, weights dequantised in registers and multiplied by tl.dot; with few tiles K is divided into parts."""
    from kernelviz.ops.w4a16_matmul import triton as kernels

    parameters = {
        "rows": rows,
        "features": features,
        "parts": parts,
        "warps": warps,
        "stages": stages,
        "order": order,
    }
    tile = tiles.FusedTile(**parameters) if all(parameters.values()) else None
    return kernels.bind_fused(x_MK, w_NGB, s_GN, z_GH, tile)


@variant(
    backend="triton",
    needs=("triton", "cuda"),
    largest={"m": tiles.GEMV_ROWS},
    space=tiles.GEMV_SPACE,
    admits=tiles.admits_gemv,
)
def triton_gemv(
    x_MK: Tensor,
    w_NGB: Tensor,
    s_GN: Tensor,
    z_GH: Tensor,
    *,
    features: int = 0,
    groups: int = 0,
    parts: int = 0,
    warps: int = 0,
    stages: int = 0,
) -> Launch:
    """Triton for at most 16 rows, without tensor cores: a program multiplies and adds some features of one row in fp32."""
    from kernelviz.ops.w4a16_matmul import triton as kernels

    parameters = {"features": features, "groups": groups, "parts": parts, "warps": warps, "stages": stages}
    tile = tiles.GemvTile(**parameters) if all(parameters.values()) else None
    return kernels.bind_gemv(x_MK, w_NGB, s_GN, z_GH, tile)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    targets=EVERY_TARGET,
    techniques=("vec16",),
    largest={"m": gemv.MOST_ROWS},
    space=gemv.SPACE,
    admits=gemv.admits,
)
def cuda_gemv(x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor, *, features: int = 0, warps: int = 0) -> Launch:
    """CUDA C++ for at most 8 rows: one logic instruction makes an fp32 number of a weight, which is multiplied and added."""
    return gemv.bind(x_MK, w_NGB, s_GN, z_GH, {"features": features, "warps": warps})


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    targets=EVERY_TARGET,
    techniques=("cp_async", "mma_sync"),
    largest={"m": mma.MOST_ROWS},
    space=mma.SPACE,
    admits=mma.admits,
)
def cuda_mma(
    x_MK: Tensor,
    w_NGB: Tensor,
    s_GN: Tensor,
    z_GH: Tensor,
    *,
    tiles: int = 0,
    deep: int = 0,
    across: int = 0,
    stages: int = 0,
    blocks: int = 0,
    parts: int = 0,
) -> Launch:
    """CUDA C++ for at most 64 rows: cp.async streams weights to mma.sync; a logic instruction makes two numbers of 16 bits."""
    parameters = {"tiles": tiles, "deep": deep, "across": across, "stages": stages, "blocks": blocks, "parts": parts}
    return mma.bind((x_MK, w_NGB, s_GN, z_GH), parameters, shuffle=False)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda"),
    targets=EVERY_TARGET,
    techniques=("cp_async", "mma_sync"),
    largest={"m": mma.MOST_ROWS},
    space=mma.SPACE,
    admits=mma.admits,
)
def cuda_mma_shuffled(
    x_MK: Tensor,
    w_NGB: Tensor,
    s_GN: Tensor,
    z_GH: Tensor,
    *,
    tiles: int = 0,
    deep: int = 0,
    across: int = 0,
    stages: int = 0,
    blocks: int = 0,
    parts: int = 0,
) -> Launch:
    """CUDA C++, as cuda_mma, with weights reordered before the timed call (untimed, as at loading): a warp reads 1 KB."""
    parameters = {"tiles": tiles, "deep": deep, "across": across, "stages": stages, "blocks": blocks, "parts": parts}
    return mma.bind((x_MK, w_NGB, s_GN, z_GH), parameters, shuffle=True)


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    targets=("sm_90", "sm_100", "sm_120"),
    techniques=("bulk_copy", "mma_sync", "warp_specialised"),
    largest={"m": bulk.MOST_ROWS},
    space=bulk.SPACE,
    admits=bulk.admits,
)
def cuda_bulk(
    x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor, *, warps: int = 0, depth: int = 0, stages: int = 0
) -> Launch:
    """CUDA C++ for at most 16 rows, for Hopper: TMA copies whole rows of weights; the products of cuda_mma, x in registers."""
    return bulk.bind(x_MK, w_NGB, s_GN, z_GH, {"warps": warps, "depth": depth, "stages": stages})


@variant(
    backend="cuda",
    needs=("nvrtc", "cuda", "sm_90"),
    targets=("sm_90", "sm_100", "sm_120"),
    techniques=("bulk_copy", "mma_sync", "warp_specialised"),
    largest={"m": bulk.MOST_ROWS_OF_INTEGERS},
    space=bulk.SPACE,
    admits=bulk.admits_integers,
)
def cuda_bulk_integers(
    x_MK: Tensor, w_NGB: Tensor, s_GN: Tensor, z_GH: Tensor, *, warps: int = 0, depth: int = 0, stages: int = 0
) -> Launch:
    """CUDA C++ for at most 4 rows, as cuda_bulk with products of integers: x as three 8-bit digits and a scale for each group."""
    return bulk.bind(x_MK, w_NGB, s_GN, z_GH, {"warps": warps, "depth": depth, "stages": stages}, integers=True)


VARIANTS = (
    torch_eager,
    torch_compile,
    triton_dequantise,
    triton_fused,
    triton_gemv,
    cuda_gemv,
    cuda_mma,
    cuda_mma_shuffled,
    cuda_bulk,
    cuda_bulk_integers,
)
