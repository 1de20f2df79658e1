"""The variants of CUTLASS: of `matmul`, and of a linear layer with an activation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernelviz.core.problem import Problem
from kernelviz.ops.catalog.variant import Configuration, Launch, Variant, variant
from kernelviz.ops.matmul.cutlass import Options
from kernelviz.ops.matmul.linear_variants import Name

if TYPE_CHECKING:
    from torch import Tensor

_NEEDS: dict[str, Any] = {
    "backend": "cutlass",
    "needs": ("cutlass", "cuda", "sm_90a"),
    "dtypes": ("bf16", "fp16"),
    "techniques": ("tma", "wgmma", "warp_specialised"),
    "slow_compile": True,
}
_MOST_OPERAND_BYTES = 160 * 1024
"""Of the 227 KiB of shared memory of a block; the result takes the rest."""
SPACE = {
    "tile_m": (128, 64, 256),
    "tile_n": (256, 128),
    "tile_k": (64, 128),
    "cluster_m": (2, 1),
    "cluster_n": (1, 2),
    "pingpong": (0, 1),
    "swizzle": (1, 2, 4, 8),
    "along_n": (-1, 0, 1),
}


def admits(configuration: Configuration, problem: Problem) -> str | None:
    """Why a configuration is not measured: its sums do not fit into registers, or its tile cannot be divided so."""
    rows, columns, pingpong = configuration["tile_m"], configuration["tile_n"], configuration["pingpong"]
    if not pingpong and rows < 128:
        return "two warpgroups that share a tile need 128 rows or more"
    if 4 * configuration["tile_k"] * (rows + columns) > _MOST_OPERAND_BYTES:
        return (
            f"two stages of {rows}×{columns}×{configuration['tile_k']} do not fit into shared memory beside the result"
        )
    if rows * columns > 128 * (128 if pingpong else 256):
        return f"the sums of {rows}×{columns} do not fit into the registers of {1 if pingpong else 2} warpgroups"
    return None


@variant(**_NEEDS, space=SPACE, admits=admits)
def cutlass_builder(
    a_MK: Tensor,
    b_KN: Tensor,
    *,
    tile_m: int = 128,
    tile_n: int = 256,
    tile_k: int = 64,
    cluster_m: int = 2,
    cluster_n: int = 1,
    pingpong: int = 0,
    swizzle: int = 1,
    along_n: int = -1,
) -> Launch:
    """CUTLASS 3.x by its collective builder: warp-specialised, persistent, in clusters; nvcc compiles it in a minute."""
    from kernelviz.ops.matmul import cutlass

    options = Options(
        tile_m=tile_m,
        tile_n=tile_n,
        tile_k=tile_k,
        cluster_m=cluster_m,
        cluster_n=cluster_n,
        pingpong=pingpong,
        swizzle=swizzle,
        along_n=along_n,
    )
    return cutlass.bind(a_MK, b_KN, options)


def cutlass_fused_of(name: Name) -> Variant:
    """The variant of a linear layer with this activation."""

    @variant(**_NEEDS)
    def cutlass_fused(x_MK: Tensor, w_NK: Tensor, b_N: Tensor) -> Launch:
        """CUTLASS 3.x: bias and function are an epilogue of its warp-specialised product, applied to the sums in registers."""
        from kernelviz.ops.matmul import cutlass

        return cutlass.bind_linear(x_MK, w_NK, b_N, Options(), name)

    return cutlass_fused


CUTLASS_VARIANTS = (cutlass_builder,)
